"""`--report sarif=PATH`: SARIF 2.1.0, which code scanning shows at the lines of the case files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, TextIO

from clawtrace import __version__
from clawtrace.errors import ExitCode
from clawtrace.report._failures import NotPassed, is_decided, not_passed
from clawtrace.report.base import CampaignReport, Report

__all__ = ["SarifReport"]

_OTHERS = {"run": "A run broke, or nothing was judged.", "threshold": "A pass rate is below the suite's threshold."}


class SarifReport(Report):
    """One result for each verdict that did not pass; types of assertions are the rules."""

    format = "sarif"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write one JSON object with a line end."""
        found = list(not_passed(report))
        driver = {"name": "clawtrace", "semanticVersion": __version__, "rules": _rules(found)}
        run = {
            "tool": {"driver": driver},
            "invocations": [{"executionSuccessful": report.exit_code in (ExitCode.PASSED, ExitCode.FAILED)}],
            "columnKind": "unicodeCodePoints",
            "results": [_result(one) for one in found],
        }
        json.dump({"version": "2.1.0", "runs": [run]}, stream, indent=2, ensure_ascii=False)
        stream.write("\n")


def _rules(found: Iterable[NotPassed]) -> list[dict[str, Any]]:
    rules = sorted({one.rule for one in found})
    return [
        {"id": rule, "shortDescription": {"text": _OTHERS.get(rule, f"The assertion {rule} did not pass.")}}
        for rule in rules
    ]


def _result(one: NotPassed) -> dict[str, Any]:
    decided = is_decided(one)
    result: dict[str, Any] = {
        "ruleId": one.rule,
        "kind": "fail" if decided else "open",
        "level": "none" if not decided else "note" if one.level is ExitCode.PASSED else "error",
        "message": {"text": f"{one.title}: {one.message}"},
        "partialFingerprints": {"clawtrace/v1": _fingerprint(one)},
        "properties": {"status": one.word, "assertion_id": one.assertion_id},
    }
    if one.run is not None:
        result["properties"] |= {"run_id": one.run.run_id, "case_id": one.run.case_id, "model_id": one.run.model_id}
    if one.verdict is not None:
        spans = [{"trace_id": item.trace_id, "span_id": item.span_id} for item in one.verdict.evidence if item.span_id]
        result["properties"] |= {"spans": spans, "sql": one.verdict.sql}
    if one.file is not None:
        place = {"artifactLocation": {"uri": one.file}, "region": {"startLine": one.line}}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _fingerprint(one: NotPassed) -> str:
    """Return what stays the same while the same assertion does not pass for the same case and model."""
    case = (one.run.case_id, one.run.model_id) if one.run is not None else (one.title, None)
    return hashlib.sha256(json.dumps([*case, one.rule, one.assertion_id]).encode()).hexdigest()[:32]

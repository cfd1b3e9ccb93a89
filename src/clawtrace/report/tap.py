"""`--report tap=PATH`: Test Anything Protocol, version 14."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

import yaml

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import Status
from clawtrace.report._failures import NotPassed, not_passed, title_of_run
from clawtrace.report.base import CampaignReport, Report

__all__ = ["TapReport"]


class TapReport(Report):
    """One test point for each verdict, and for each run without one."""

    format = "tap"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write the plan and the test points."""
        points = list(_points(report))
        stream.write(f"TAP version 14\n1..{len(points)}\n")
        for number, (description, found) in enumerate(points, 1):
            good = found is None or found.level is ExitCode.PASSED
            directive = "" if found is None else _directive(found)
            stream.write(f"{'ok' if good else 'not ok'} {number} - {_escaped(description)}{directive}\n")
            if found is not None:
                stream.write(_diagnostics(found))


def _points(report: CampaignReport) -> Iterator[tuple[str, NotPassed | None]]:
    for run in report.results:
        yield from (
            (f"{title_of_run(run)}: {verdict.id}", None) for verdict in run.verdicts if verdict.status is Status.PASS
        )
    for one in not_passed(report):
        yield f"{one.title}: {one.assertion_id or one.word}", one


def _directive(one: NotPassed) -> str:
    if one.level is not ExitCode.PASSED:
        return ""
    return " # TODO known failure" if one.word == "known failure" else f" # SKIP {one.word}"


def _diagnostics(one: NotPassed) -> str:
    data: dict[str, Any] = {"message": one.message, "status": one.word}
    if one.file is not None:
        data["at"] = {"file": one.file, "line": one.line}
    if one.verdict is not None:
        data |= {"expected": one.verdict.expected, "actual": one.verdict.actual}
        data["spans"] = [item.span_id for item in one.verdict.evidence if item.span_id is not None]
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1_000)
    return "  ---\n" + "".join(f"  {line}\n" for line in text.splitlines()) + "  ...\n"


def _escaped(text: str) -> str:
    """Return a description in one line, in which no hash begins a directive."""
    return " ".join(text.replace("\\", "\\\\").replace("#", "\\#").split())

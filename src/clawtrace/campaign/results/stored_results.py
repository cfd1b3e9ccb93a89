"""The judgement of a run as a file, and back: so that an evaluation that nothing could change is not made again.

The file lies next to those of the same evaluation profile (spec: config.md §5) and is written whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clawtrace.campaign.results.layout import write_json
from clawtrace.model.verdict import Evidence, RunResult, Status, Verdict

__all__ = ["EVALUATION_SCHEMA", "kept_file", "read_result", "verdict_data", "verdict_of", "write_result"]

EVALUATION_SCHEMA = "clawtrace.evaluation/1"


def kept_file(evaluations: Path, run: str) -> Path:
    """Return where the judgement of a run is kept; `run` is its folder, relative to the campaign's."""
    return evaluations / f"{run.removeprefix('runs/')}.json"


def write_result(path: Path, fingerprint: str, result: RunResult) -> None:
    """Keep a judgement under the fingerprint of what judged."""
    data = result._asdict() | {
        "verdicts": [verdict_data(verdict) for verdict in result.verdicts],
        "totals": dict(result.totals),
    }
    write_json(path, {"schema": EVALUATION_SCHEMA, "fingerprint": fingerprint, "result": data})


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as data for JSON."""
    return verdict._asdict() | {
        "evidence": [one._asdict() for one in verdict.evidence],
        "params": dict(verdict.params),
        "decided_by": dict(verdict.decided_by),
        "definition": dict(verdict.definition),
        "scope": dict(verdict.scope),
    }


def read_result(path: Path, fingerprint: str) -> RunResult | None:
    """Return the judgement that was kept under exactly this fingerprint; None where none was, or it cannot be read.

    A judgement that an error is part of is none to keep: what broke may work now.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != EVALUATION_SCHEMA or data["fingerprint"] != fingerprint:
            return None
        return _result(data["result"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _result(data: Mapping[str, Any]) -> RunResult | None:
    verdicts = tuple(verdict_of(one) for one in data["verdicts"])
    if any(verdict.status is Status.ERROR for verdict in verdicts):
        return None
    tuples = {name: tuple(data[name]) for name in ("incomplete_because", "diagnostics", "retried", "facts_state")}
    status = None if data["status"] is None else Status(data["status"])
    return RunResult(**{**data, **tuples, "status": status, "verdicts": verdicts})


def verdict_of(data: Mapping[str, Any]) -> Verdict:
    """Return the verdict of what `verdict_data` returned."""
    evidence = tuple(Evidence(**one) for one in data["evidence"])
    return Verdict(
        **{**data, "status": Status(data["status"]), "evidence": evidence, "dimensions": tuple(data["dimensions"])}
    )

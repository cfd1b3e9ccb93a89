"""The judgement of a run as a file, and back: so that an evaluation that nothing could change is not made again.

The file lies next to those of the same evaluation profile (spec: config.md §5) and is written whole or not at all.
"""

from __future__ import annotations

import json
from pathlib import Path

from clawtrace.campaign.results.layout import write_json
from clawtrace.model.verdict import RunResult, Status
from clawtrace.verdicts.reading.result_data import result_data, result_of

__all__ = ["EVALUATION_SCHEMA", "kept_file", "read_result", "write_result"]

EVALUATION_SCHEMA = "clawtrace.evaluation/1"


def kept_file(evaluations: Path, run: str) -> Path:
    """Return where the judgement of a run is kept; `run` is its folder, relative to the campaign's."""
    return evaluations / f"{run.removeprefix('runs/')}.json"


def write_result(path: Path, fingerprint: str, result: RunResult) -> None:
    """Keep a judgement under the fingerprint of what judged."""
    write_json(path, {"schema": EVALUATION_SCHEMA, "fingerprint": fingerprint, "result": result_data(result)})


def read_result(path: Path, fingerprint: str) -> RunResult | None:
    """Return the judgement that was kept under exactly this fingerprint; None where none was, or it cannot be read.

    A judgement that an error is part of is none to keep: what broke may work now. So is one with a judge that did not answer.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != EVALUATION_SCHEMA or data["fingerprint"] != fingerprint:
            return None
        result = result_of(data["result"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    broke = result.judgement.get("failed_answers") or any(verdict.status is Status.ERROR for verdict in result.verdicts)
    return None if broke else result

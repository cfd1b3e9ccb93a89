"""Verdicts that spans touched which came after them: they are marked where they are kept (spec: span-model.md §3).

The next evaluation judges such a run again, and the mark is gone with the verdict. Until then those who read a
judgement or a report again, as comparisons do, get a note.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clawtrace.campaign.planning.expand import Plan
from clawtrace.campaign.results.layout import write_json
from clawtrace.campaign.results.stored import StoredRun, kept_runs
from clawtrace.campaign.results.stored_results import kept_file

if TYPE_CHECKING:
    from clawtrace.session.session import Session

__all__ = ["mark_stale", "mark_what_grew"]


def mark_what_grew(plan: Plan, session: Session) -> tuple[str, ...]:
    """Mark the verdicts on runs of the campaign that are not of this plan, and of which more arrived now; return the runs."""
    planned = {plan.folder / run.folder for run in plan.runs}
    grown = [run for run in kept_runs(plan.folder, but=planned) if session.has_grown(run.run_id)]
    return mark_stale(plan.folder, grown)


def mark_stale(campaign: Path, runs: Collection[StoredRun]) -> tuple[str, ...]:
    """Mark every verdict that a campaign keeps on runs of which more arrived since, in its judgements and in its report.

    Args:
        campaign: its folder; the caller holds its store.

    Returns:
        The ids of those runs that a verdict was marked of.
    """
    ids = {run.run_id for run in runs}
    files = [
        kept_file(evaluations, run.folder.relative_to(campaign.absolute()).as_posix())
        for run in runs
        for evaluations in (campaign / "evaluations").glob("*")
    ]
    marked: set[str] = set()
    for file in [*files, campaign / "report.json"] if ids else []:
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            found = [(run_id, one) for run_id, verdicts in _judged(data) if run_id in ids for one in verdicts]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        for _, verdict in found:
            verdict["stale"] = True
        if found:
            write_json(file, data)
            marked |= {run_id for run_id, _ in found}
    return tuple(run.run_id for run in runs if run.run_id in marked)


def _judged(data: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each run of a kept judgement or of a report, with its verdicts."""
    if "result" in data:
        yield data["result"]["run_id"], data["result"]["verdicts"]
    for case in data.get("cases", ()):
        for run in case["runs"]:
            yield run["run_id"], run["assertions"]

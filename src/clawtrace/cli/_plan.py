"""What a campaign would do (`eval --dry-run`): which runs, which of them reused, and what the others may cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from clawtrace.campaign.expand import Plan, PlannedRun
from clawtrace.campaign.reuse import Decision
from clawtrace.campaign.stored import read_run
from clawtrace.cli._data import print_table, stdout_paper

__all__ = ["print_plan"]


def print_plan(plan: Plan, decisions: Mapping[str, Decision]) -> None:
    """Print a line for each run, then how many there are of which kind and what earlier runs of the same cost."""
    rows = [_row(planned, decisions[planned.run_id]) for planned in plan.runs]
    print_table(("case", "model", "repetition", "", "why"), rows)
    to_run = [planned for planned in plan.runs if decisions[planned.run_id].stored is None]
    paper = stdout_paper()
    paper.line()
    paper.line((f"{len(plan.runs)} runs: {len(to_run)} to run, {len(plan.runs) - len(to_run)} reused.", "bold"))
    if to_run:
        paper.line((_estimate(plan, to_run), ""))


def _row(planned: PlannedRun, decision: Decision) -> tuple[Any, ...]:
    what = "run" if decision.stored is None else "reuse"
    return planned.case.config.case_id, planned.model_id, planned.repetition, what, decision.why


def _estimate(plan: Plan, to_run: Iterable[PlannedRun]) -> str:
    """Say what the runs may take, from the last run of the same case and model where there is one."""
    runs = list(to_run)
    known = [run.data for one in runs if (run := read_run(plan.folder / one.folder, plan.folder)) is not None]
    if not known:
        return "What they may take is unknown: none of them was run before."
    seconds = _sum(data.get("duration_ms") for data in known)
    parts = [
        f"{seconds / 1000:.1f} s of agents' time" if seconds is not None else "",
        f"{tokens:.0f} tokens" if (tokens := _sum(data.get("tokens") for data in known)) is not None else "",
        f"{cost:.4f} USD" if (cost := _sum(data.get("cost_usd") for data in known)) is not None else "",
    ]
    said = ", ".join(filter(None, parts)) or "nothing that was recorded"
    which = "they" if len(known) == len(runs) else f"{len(known)} of them"
    return f"When {which} were run last, they took {said}."


def _sum(values: Iterable[float | None]) -> float | None:
    found = list(values)
    return None if not found or None in found else sum(value for value in found if value is not None)

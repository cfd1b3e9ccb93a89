"""The plan of a campaign (`eval --dry-run`): its runs, the reused ones, and the estimated cost of the others."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.campaign.results.stored import read_run
from clawtrace.campaign.running.reuse import Decision
from clawtrace.cli.output.data import print_table, stdout_console
from clawtrace.support.figures import amount

__all__ = ["grounds_of_reuse", "print_plan"]


def print_plan(plan: Plan, decisions: Mapping[str, Decision], refusals: Mapping[str, str]) -> None:
    """Print a line for each run, then how many there are of which kind and what earlier runs of the same cost.

    Args:
        decisions: which stored runs are reused for planned ones.
        refusals: by case id, why nothing would be started; empty when it would be.
    """
    rows = [_row(planned, decisions[planned.run_id]) for planned in plan.runs]
    print_table(("case", "model", "repetition", "", "why"), rows)
    to_run = [planned for planned in plan.runs if decisions[planned.run_id].stored is None]
    console = stdout_console()
    console.line()
    runs, reused = amount(len(plan.runs), "run"), len(plan.runs) - len(to_run)
    console.line((f"{runs}: {len(to_run)} to run, {reused} reused.", "bold"))
    if grounds := grounds_of_reuse(plan, decisions):
        console.paragraph(grounds)
    if to_run:
        console.line((_estimate(plan, to_run), ""))
    if to_run and plan.fail_fast:
        console.paragraph(
            "`fail_fast` is set: after the first failed case, including a stored one, the remaining runs are skipped."
        )
    for case_id, why in refusals.items():
        console.paragraph(f"Nothing would be started, because of the case `{case_id}`: {why}")


def grounds_of_reuse(plan: Plan, decisions: Mapping[str, Decision]) -> str:
    """Return why stored runs are reused, and what prevents it for others; empty where there is nothing to say."""
    chosen = [decisions[planned.run_id] for planned in plan.runs]
    reused = [one for one in chosen if one.stored is not None]
    resumed = sum(bool(one.unknown) for one in reused)
    unused = [one.unknown for one in chosen if one.stored is None and one.why == one.unknown]
    sentences = [
        f"{len(reused) - resumed} reused, as nothing that their agents depend on has changed (settings, messages, the "
        "command's files, `inputs`)" if len(reused) > resumed else "",
        f"{resumed} reused from the same execution of the campaign; whether their agents have been edited "
        "since is unknown" if resumed else "",
        f"{amount(len(unused), 'stored run')} not reused: {unused[0]}" if unused and unused[0] else "",
    ]  # fmt: skip
    return "; ".join(filter(None, sentences))


def _row(planned: PlannedRun, decision: Decision) -> tuple[Any, ...]:
    what = "run" if decision.stored is None else "reuse"
    return planned.case.config.case_id, planned.model_id, planned.repetition, what, decision.why


def _estimate(plan: Plan, to_run: Sequence[PlannedRun]) -> str:
    """Return what the runs may take, from stored runs of the same case and model: typical, and least where several are."""
    folders = [(plan.folder / planned.folder).parent for planned in to_run]
    earlier = {folder: _stored_runs(folder, plan.folder) for folder in dict.fromkeys(folders)}
    known = [found for folder in folders if (found := earlier[folder])]
    if not known:
        return "Time and cost are unknown: none of them has run before."
    which = "they" if len(known) == len(to_run) else f"{len(known)} of them"
    typical = _sums(known, statistics.median)
    stored = sum(map(len, earlier.values()))
    by = f"Based on {amount(stored, 'stored run')} of the same cases"
    least = f", and at least {_sums(known, min)}" if any(len(found) > 1 for found in known) else ""
    return f"{by}, {which} typically take {typical}{least}."


def _stored_runs(folder: Path, campaign: Path) -> list[Mapping[str, Any]]:
    """Return what is stored of the runs of one case and model, all repetitions."""
    found = (read_run(file.parent, campaign) for file in sorted(folder.glob("*/run.json")))
    return [run.data for run in found if run is not None]


def _sums(known: Sequence[Sequence[Mapping[str, Any]]], of_one: Callable[[list[float]], float]) -> str:
    """Return the sums over the planned runs, each taking what `of_one` makes of its earlier runs."""
    seconds, tokens, cost = (_sum(known, key, of_one) for key in ("duration_ms", "tokens", "cost_usd"))
    parts = [
        f"{seconds / 1000:.1f} s of agents' time" if seconds is not None else "",
        f"{tokens:.0f} tokens" if tokens is not None else "",
        f"{cost:.4f} USD" if cost is not None else "",
    ]
    return ", ".join(filter(None, parts)) or "nothing recorded"


def _sum(
    known: Sequence[Sequence[Mapping[str, Any]]], key: str, of_one: Callable[[list[float]], float]
) -> float | None:
    """Return a sum; None where any of the runs does not know its part."""
    total = 0.0
    for found in known:
        values = [run[key] for run in found if run.get(key) is not None]
        if len(values) < len(found):
            return None
        total += of_one(values)
    return total

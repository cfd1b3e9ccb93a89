"""What a campaign's runs came to the last time, and what follows from it for this time (spec: config.md §7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clawtrace.campaign.expand import Plan, PlannedRun
from clawtrace.campaign.reuse import Decision, evaluation_folder
from clawtrace.campaign.stored_results import kept_file, read_result
from clawtrace.engine.gate import Gate
from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Status

__all__ = ["judged_anew", "not_passed", "undecided_afresh"]


def not_passed(plan: Plan, decisions: Mapping[str, Decision]) -> Plan:
    """Return the plan with the runs that did not pass last time; what was edited since, or never run, has not passed."""
    return replace(plan, runs=tuple(run for run in plan.runs if not _passed(_last(plan, run, decisions[run.run_id]))))


def undecided_afresh(plan: Plan, decisions: Mapping[str, Decision]) -> dict[str, Decision]:
    """Return the decisions with fresh runs in place of those that had a skipped or inconclusive verdict last time."""
    found = {}
    for run in plan.runs:
        decision = decisions[run.run_id]
        last = _last(plan, run, decision)
        if last is not None and any(one.status in (Status.SKIP, Status.INCONCLUSIVE) for one in last.standings):
            decision = replace(decision, stored=None, why="it was not decided last time (`--rerun-inconclusive`)")
        found[run.run_id] = decision
    return found


def judged_anew(decisions: Mapping[str, Decision]) -> dict[str, Decision]:
    """Return the decisions with every stored run judged again: also by spans that came after its verdict."""
    return {run_id: replace(decision, judge_anew=True) for run_id, decision in decisions.items()}


def _last(plan: Plan, run: PlannedRun, decision: Decision) -> RunResult | None:
    """Return what a run came to last time; None where it was edited since, not judged, or not kept."""
    if decision.stored is None or decision.evaluation is None:
        return None
    found = read_result(kept_file(evaluation_folder(plan), run.folder), decision.evaluation)
    return found if found is not None and found.run_id == decision.stored.run_id else None


def _passed(result: RunResult | None) -> bool:
    return result is not None and Gate().of_run(result) is ExitCode.PASSED

"""Why a campaign starts nothing: what is missing on this machine, said before any agent runs (spec: config.md §3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.campaign.reusing.reuse import Decision
from clawtrace.campaign.running.judged_run import unavailable_judge
from clawtrace.runners.base import runner_types

__all__ = ["missing_runtimes", "refusals"]


def missing_runtimes(runs: Iterable[PlannedRun], env: Mapping[str, str]) -> dict[str, str]:
    """Return, by case id, what must be installed or set before the runs can start; empty when nothing is known to be."""
    found: dict[str, str] = {}
    types = runner_types()
    for planned in runs:
        runner = types[planned.case.config.runner.type]()
        missing = runner.missing(planned.settings, env, planned.asked)
        if missing is not None:
            found.setdefault(planned.case.config.case_id, missing)
    return found


def refusals(plan: Plan, decisions: Mapping[str, Decision], env: Mapping[str, str]) -> dict[str, str]:
    """Return, by case id, why a campaign starts nothing; empty when it starts. Cases in quarantine stop nothing."""
    no_judge = unavailable_judge(plan, env)
    if no_judge is not None:
        return {run.case.config.case_id: no_judge for run in plan.runs}
    to_start = [run for run in plan.runs if decisions[run.run_id].stored is None]
    return missing_runtimes([run for run in to_start if not plan.suite.in_quarantine(run.case)], env)

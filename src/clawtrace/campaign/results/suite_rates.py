"""The pass rates of a campaign against the thresholds of its suite (spec: config.md §6)."""

from __future__ import annotations

from collections.abc import Iterable

from clawtrace.campaign.planning.expand import Plan
from clawtrace.model.verdict import RunResult
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.thresholds import SuiteRate, ThresholdRules, suite_rates

__all__ = ["rates_of_suite"]


def rates_of_suite(plan: Plan, results: Iterable[RunResult], gate: Gate) -> list[SuiteRate]:
    """Return the pass rate of each model of a plan that has a threshold; runs in quarantine do not count."""
    asked = plan.suite.config.thresholds
    if asked is None:
        return []
    rules = ThresholdRules(asked.default, asked.models, asked.tolerance, asked.behavior == "informational")
    counted = [result for result in results if not result.quarantined]
    return suite_rates(counted, list(dict.fromkeys(run.model_id for run in plan.runs)), rules, gate)

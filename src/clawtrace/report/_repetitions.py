"""The part of `clawtrace.results/1` that tells of repetitions and thresholds (spec: config.md §6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from clawtrace.engine.gate import Gate
from clawtrace.engine.pass_rate import PassRate, Stability, assertion_rates
from clawtrace.engine.thresholds import SuiteRate
from clawtrace.model.verdict import RunResult
from clawtrace.report.base import Struct

__all__ = ["RepeatedAssertion", "SuiteThreshold", "repeated_assertions", "share", "suite_threshold"]


@dataclass(frozen=True, kw_only=True)
class RepeatedAssertion(Struct):
    """One assertion over the repetitions of a case with one model."""

    id: str
    """The assertion's id."""
    type: str
    """The assertion's type."""
    passed: int
    """Runs in which it passed."""
    failed: int
    """Runs in which it failed, whatever its severity."""
    undecided: int
    """Runs in which it did neither."""
    min_pass_rate: float
    """Least share of the runs in which it must pass."""
    reached: bool | None
    """Whether it was reached; null when undecided runs decide."""
    pass_rate: float | None
    """`passed` divided by the runs in which it was asked."""
    interval: tuple[float, float] | None
    """Wilson interval of the pass rate, confidence 0.95, as wide as undecided answers could make it."""
    stability: Stability | None
    """How alike the answers are; null while undecided ones could say otherwise."""
    pass_at_k: dict[str, float]
    """By k: the chance that it passes in at least one of k runs."""
    pass_hat_k: dict[str, float]
    """By k: the chance that it passes in all of k runs (pass^k)."""


@dataclass(frozen=True, kw_only=True)
class SuiteThreshold(Struct):
    """The pass rate of all runs with one model against the suite's threshold."""

    model_id: str | None
    """The suite's model entry; null for a suite without models."""
    passed: int
    """Runs that passed."""
    failed: int
    """Runs that failed."""
    undecided: int
    """Runs that did neither."""
    pass_rate: float | None
    """`passed` divided by the runs that ran and were judged; null when none was."""
    interval: tuple[float, float] | None
    """Wilson interval of the pass rate, confidence 0.95."""
    threshold: float
    """The least pass rate, from the suite's file."""
    tolerance: float
    """How far the pass rate may stay below it."""
    gate_on: Literal["rate", "lower-bound"]
    """What was held against it: the rate, or the lower end of its interval."""
    reached: bool | None
    """Whether it was reached; null when undecided runs decide, or none ran."""
    behavior: Literal["error", "informational"]
    """Whether a pass rate below is exit code 1, or only shown."""


def share(rate: PassRate) -> dict[str, Any]:
    """Return the fields that everything repeated has."""
    return {
        "passed": rate.passed,
        "failed": rate.failed,
        "undecided": rate.undecided,
        "pass_rate": rate.rate,
        "interval": rate.interval,
        "stability": rate.stability,
        "pass_at_k": {str(k): chance for k, chance in rate.pass_at.items()},
        "pass_hat_k": {str(k): chance for k, chance in rate.pass_hat.items()},
    }


def repeated_assertions(runs: Sequence[RunResult], gate: Gate) -> list[RepeatedAssertion]:
    """Return each assertion over the repetitions; none when fewer than two runs were judged."""
    if sum(len(run.verdicts) > 0 for run in runs) < 2:
        return []
    return [
        RepeatedAssertion(
            id=one.id,
            type=one.type,
            min_pass_rate=one.minimum,
            reached=one.rate.reaches(one.minimum, gate.gate_on),
            **share(one.rate),
        )
        for one in assertion_rates(runs)
    ]


def suite_threshold(found: SuiteRate, gate: Gate) -> SuiteThreshold:
    """Return the struct of one threshold."""
    return SuiteThreshold(
        model_id=found.model_id,
        passed=found.rate.passed,
        failed=found.rate.failed,
        undecided=found.rate.undecided,
        pass_rate=found.rate.rate,
        interval=found.rate.interval,
        threshold=found.threshold,
        tolerance=found.tolerance,
        gate_on=gate.gate_on,
        reached=found.reached,
        behavior="informational" if found.informational else "error",
    )

"""The pass rate of a suite, model by model, against its thresholds (spec: config.md §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult
from clawtrace.support.figures import beside
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.pass_rate import PassRate, rate_of_runs

__all__ = ["SuiteRate", "ThresholdRules", "suite_rates"]


class ThresholdRules(NamedTuple):
    """`thresholds:` of a suite."""

    default: float | None = None
    """Least pass rate of models that are not in `models`; None: they have none."""
    models: Mapping[str, float] = MappingProxyType({})
    tolerance: float = 0.0
    informational: bool = False
    """Whether a pass rate below is only shown."""


class SuiteRate(NamedTuple):
    """The share of a model's runs that passed, and the required share."""

    model_id: str | None
    rate: PassRate
    threshold: float
    tolerance: float
    informational: bool
    reached: bool | None
    """None when undecided runs decide, or none ran."""

    def code(self, gate: Gate) -> ExitCode:
        """Return the exit code that this asks for."""
        if self.informational or self.reached:
            return ExitCode.PASSED
        if self.reached is False:
            return ExitCode.FAILED
        lenient = gate.gate_incomplete == "warn" and not gate.strict and self.rate.ran > 0
        return ExitCode.PASSED if lenient else ExitCode.UNDECIDED

    @property
    def sentence(self) -> str:
        """The measured and the expected share."""
        whose = "the suite" if self.model_id is None else f"`{self.model_id}`"
        asked = f"the threshold is {self.threshold:g}"
        asked += f" with a tolerance of {self.tolerance:g}" if self.tolerance else ""
        if self.rate.rate is None or self.rate.interval is None:
            return f"no run of {whose} was judged; {asked}"
        low, high = self.rate.interval
        undecided = f", {self.rate.undecided} undecided" if self.rate.undecided else ""
        bounds = (0, self.threshold, self.threshold - self.tolerance, 1)
        rate, least, most = (beside(one, *bounds) for one in (self.rate.rate, low, high))
        return (
            f"{self.rate.passed} of {self.rate.ran} runs of {whose} passed{undecided}: {rate}, "
            f"between {least} and {most}; {asked}"
        )


def suite_rates(
    results: Sequence[RunResult], models: Sequence[str | None], rules: ThresholdRules, gate: Gate
) -> list[SuiteRate]:
    """Return the pass rate of each model that has a threshold.

    Args:
        models: the models that were to be run, in order; None means a suite without models.
        gate: says whether the rate or the lower end of its interval counts.
    """
    found = []
    for model_id in models:
        threshold = rules.default if model_id is None else rules.models.get(model_id, rules.default)
        if threshold is not None:
            rate = rate_of_runs(result for result in results if result.model_id == model_id)
            reached = rate.reaches(threshold - rules.tolerance, gate.gate_on)
            found.append(SuiteRate(model_id, rate, threshold, rules.tolerance, rules.informational, reached))
    return found

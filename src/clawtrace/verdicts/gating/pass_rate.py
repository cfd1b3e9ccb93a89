"""Pass rate of repetitions, its confidence interval, and their stability (spec: config.md §6).

Undecided repetitions are neither passes nor failures. The rate counts them as not passed, the interval reaches as far
as they could have turned, and what depends on them is not said.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from clawtrace.model.verdict import RunResult, Standing, Status

__all__ = [
    "GateOn",
    "Outcome",
    "PassRate",
    "Stability",
    "assertion_rates",
    "outcome_of",
    "rate_of",
    "rate_of_runs",
    "wilson",
]

CONFIDENCE = 0.95
"""Confidence of every interval."""

_Z = 1.959963984540054
"""`NormalDist().inv_cdf(0.975)`, spelled out: importing `statistics` takes longer than judging a run. A test compares."""

GateOn = Literal["rate", "lower-bound"]
"""The value compared with a minimum: the observed rate, or the lower end of its interval."""

Stability = Literal["stable-pass", "flaky", "stable-fail"]

Outcome = Literal["passed", "failed", "undecided"]

_OUTCOMES: Mapping[Status, Outcome] = {Status.PASS: "passed", Status.FAIL: "failed"}

_ROUNDING = 1e-9
"""Rates are quotients, minimums are typed decimals: 0.8 - 0.1 must still be reached by 7 of 10."""

_SHOWN_KS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


class PassRate(NamedTuple):
    """Repetitions that ran and were judged."""

    passed: int = 0
    failed: int = 0
    undecided: int = 0
    """Without a trace, inconclusive, with an assertion that broke, or warned because data was missing."""

    @property
    def ran(self) -> int:
        """All repetitions that ran."""
        return self.passed + self.failed + self.undecided

    @property
    def rate(self) -> float | None:
        """Passes divided by the repetitions that ran; None when none ran."""
        return self.passed / self.ran if self.ran else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson interval of the rate, wide enough for every way the undecided could turn; None when none ran."""
        if not self.ran:
            return None
        return wilson(self.passed, self.ran)[0], wilson(self.passed + self.undecided, self.ran)[1]

    @property
    def stability(self) -> Stability | None:
        """The stability of the repetitions; None if fewer than two ran, or if undecided ones could change it."""
        if self.passed and self.failed:
            return "flaky"
        if self.undecided or self.ran < 2:
            return None
        return "stable-pass" if self.passed else "stable-fail"

    @property
    def pass_at(self) -> dict[int, float]:
        """For some k up to the number of repetitions: the chance that at least one of k runs passes."""
        return {k: pass_at_k(self.ran, self.passed, k) for k in self._ks()}

    @property
    def pass_hat(self) -> dict[int, float]:
        """For some k up to the number of repetitions: the chance that all of k runs pass."""
        return {k: pass_hat_k(self.ran, self.passed, k) for k in self._ks()}

    def reaches(self, minimum: float, gate_on: GateOn = "rate") -> bool | None:
        """Return whether the rate reaches `minimum`; None when the undecided repetitions decide, or none ran.

        With `lower-bound` it is the lower end of the interval that must reach it: what was observed must be good enough
        to be no luck. No number of runs can show a rate of 1, so a minimum of 1 always asks that every run passed.
        """
        if not self.ran:
            return None
        least, most = self.passed / self.ran, (self.passed + self.undecided) / self.ran
        if gate_on == "lower-bound" and minimum < 1:
            least, most = wilson(self.passed, self.ran)[0], wilson(self.passed + self.undecided, self.ran)[0]
        if least >= minimum - _ROUNDING:
            return True
        return None if most >= minimum - _ROUNDING else False

    def _ks(self) -> list[int]:
        return sorted({*(k for k in _SHOWN_KS if k < self.ran), self.ran}) if self.ran else []


class AssertionRate(NamedTuple):
    """One assertion over the repetitions of its case."""

    id: str
    type: str
    rate: PassRate
    minimum: float
    """Its `min_pass_rate`."""


@lru_cache(4096)
def wilson(passed: int, ran: int) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion (Wilson 1927), without continuity correction.

    Args:
        passed: at least 0, at most `ran`.
        ran: at least 1.
    """
    rate, square = passed / ran, _Z * _Z / ran
    half = _Z * math.sqrt(rate * (1 - rate) / ran + square / (4 * ran))
    middle, scale = rate + square / 2, 1 + square
    low = 0.0 if passed == 0 else (middle - half) / scale
    return low, 1.0 if passed == ran else (middle + half) / scale


def pass_at_k(ran: int, passed: int, k: int) -> float:
    """Return the unbiased estimate of the chance that at least one of `k` runs passes (Chen et al. 2021, equation 1).

    Raises:
        ValueError: `k` is not between 1 and `ran`.
    """
    return 1 - _share(ran - passed, ran, k)


def pass_hat_k(ran: int, passed: int, k: int) -> float:
    """Return the unbiased estimate of the chance that all of `k` runs pass (Yao et al. 2024, pass^k).

    Raises:
        ValueError: `k` is not between 1 and `ran`.
    """
    return _share(passed, ran, k)


def _share(some: int, of: int, k: int) -> float:
    """Return C(some, k) / C(of, k), as a product that neither overflows nor takes long."""
    if not 1 <= k <= of:
        raise ValueError(f"k must be between 1 and the number of runs, {of}, found {k}")
    return math.prod((some - i) / (of - i) for i in range(k)) if some >= k else 0.0


def outcome_of(result: RunResult) -> Outcome | None:
    """Return what a run counts as among its repetitions; None when it broke, or nothing was asked of it.

    A failed assertion of severity ``warn`` and a known failure count against no run, as they count against no exit code.
    """
    if result.status is None or result.error:
        return None
    if result.status is Status.WARN:
        missing = any(one.missing_data and one.severity == "error" for one in result.standings)
        return "undecided" if missing else "passed"
    return _OUTCOMES.get(result.status, "undecided")


def rate_of_runs(results: Iterable[RunResult]) -> PassRate:
    """Return how many runs passed, of those that ran and were judged."""
    return rate_of(outcome_of(result) for result in results)


def rate_of(outcomes: Iterable[Outcome | None]) -> PassRate:
    """Return the rate of runs of these outcomes; None is no run."""
    found = Counter(outcomes)
    return PassRate(found["passed"], found["failed"], found["undecided"])


def assertion_rates(results: Sequence[RunResult]) -> list[AssertionRate]:
    """Return the rate of each assertion over the repetitions of one case with one model, in the order of the file."""
    judged = [result for result in results if len(result.verdicts)]
    if not judged:
        return []
    standings: list[Sequence[Standing]] = [result.standings for result in judged]
    found = []
    for number, verdict in enumerate(judged[0].verdicts):
        rate = rate_of(_outcome_of_answer(one[number]) for one in standings if number < len(one))
        found.append(AssertionRate(verdict.id, verdict.type, rate, verdict.min_pass_rate))
    return found


def _outcome_of_answer(standing: Standing) -> Outcome:
    """Return what one answer counts as: a known failure failed, regardless of what counts against the run."""
    return "failed" if standing.known_failure else _OUTCOMES.get(standing.status, "undecided")

"""Two samples compared: tests, their correction, sizes of differences, and what could have been found at all.

Pure functions of the standard library: scipy and numpy, which have these tests, take 200 MB of an installation. The tests
of this module compare each p-value with scipy's. What one sample says of itself is in `verdicts/gating/pass_rate.py`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, median
from typing import NamedTuple

from clawtrace.campaign.comparing.comparison import CaseComparison, Outcomes, RateTest
from clawtrace.report.base import case_title
from clawtrace.verdicts.gating.pass_rate import wilson

__all__ = [
    "REASON",
    "Shift",
    "difference_interval",
    "fisher",
    "holm",
    "least_delta",
    "least_fisher",
    "least_mann_whitney",
    "lowest_unsuspicious",
    "mann_whitney",
    "most_noticed",
    "shift",
    "shows_collapse",
    "stratified",
    "stratified_difference",
    "unnoticed",
]

_MOST_PAIRS = 100
"""Samples of up to this many pairs of values get the exact Mann-Whitney test (10 ms), larger ones the normal approximation."""

_SLACK = 1 + 1e-7
"""Probabilities that are equal but for rounding count as equal, as scipy has it in Fisher's test."""

Counts = tuple[int, int]
"""Passes and failures."""


def fisher(first: Counts, second: Counts) -> float:
    """Return the two-sided p-value of Fisher's exact test: were both drawn with the same pass rate?"""
    return stratified([(first, second)])


def stratified(strata: Sequence[tuple[Counts, Counts]]) -> float:
    """Return the two-sided p-value of the exact test of one pass rate ratio over several pairs of samples.

    Given each pair's totals, the passes of its second sample are hypergeometric; their sum over the pairs is compared
    with its exact distribution (Cox 1958, the exact form of the Mantel-Haenszel test): the p-value is the weight of all
    sums that are no more likely than the one seen. Of one pair it is Fisher's test.
    """
    chances, offset = [1.0], 0
    for first, second in strata:
        ran_1, ran_2, passed = sum(first), sum(second), first[0] + second[0]
        low, all_ways = max(0, passed - ran_1), math.comb(ran_1 + ran_2, passed)
        ways = [math.comb(ran_2, x) * math.comb(ran_1, passed - x) for x in range(low, min(passed, ran_2) + 1)]
        chances, offset = _of_sums(chances, [number / all_ways for number in ways]), offset + low
    seen = chances[sum(second[0] for _, second in strata) - offset]
    return min(1.0, math.fsum(chance for chance in chances if chance <= seen * _SLACK))


def _of_sums(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return the chances of the sums of two independent numbers, each given by the chances of 0, of 1, of 2 and so on."""
    sums = [0.0] * (len(first) + len(second) - 1)
    for start, chance in enumerate(second):
        end = start + len(first)
        sums[start:end] = [known + chance * other for known, other in zip(sums[start:end], first, strict=True)]
    return sums


def stratified_difference(strata: Sequence[tuple[Counts, Counts]]) -> float:
    """Return the second pass rate minus the first over several pairs of samples (Mantel and Haenszel's weights)."""
    weights = [sum(first) * sum(second) / (sum(first) + sum(second)) for first, second in strata]
    rates = [second[0] / sum(second) - first[0] / sum(first) for first, second in strata]
    return sum(weight * rate for weight, rate in zip(weights, rates, strict=True)) / sum(weights)


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p-value of the Mann-Whitney test: does one sample tend to larger values?

    Exact for small samples, with ties as well; the normal approximation with tie and continuity correction for others.
    """
    pooled = sorted([*first, *second])
    ranks = tuple(bisect_left(pooled, value) + bisect_right(pooled, value) + 1 for value in pooled)
    seen = sum(bisect_left(pooled, value) + bisect_right(pooled, value) + 1 for value in first)
    if len(first) * len(second) > _MOST_PAIRS:
        return _normal_mann_whitney(pooled, seen / 2, len(first))
    ways = _rank_sums(ranks, len(first))
    below, above = (sum(number for value, number in ways.items() if side(value)) for side in (seen.__ge__, seen.__le__))
    return min(1.0, 2 * min(below, above) / math.comb(len(pooled), len(first)))


@lru_cache(4096)
def _rank_sums(ranks: tuple[int, ...], size: int) -> Counter[int]:
    """Return in how many ways `size` of the ranks have each sum. Ranks are doubled, so that those of ties are whole."""
    ways: list[Counter[int]] = [Counter({0: 1}), *(Counter[int]() for _ in range(size))]
    for rank in ranks:
        for taken in range(size, 0, -1):
            for value, number in ways[taken - 1].items():
                ways[taken][value + rank] += number
    return ways[size]


def _normal_mann_whitney(pooled: Sequence[float], rank_sum: float, size: int) -> float:
    """Return the p-value by the normal approximation, of the rank sum of `size` values of all (Conover 1999, 5.1)."""
    ran, other = len(pooled), len(pooled) - size
    ties = sum(number**3 - number for number in Counter(pooled).values())
    spread = math.sqrt(size * other / 12 * (ran + 1 - ties / (ran * (ran - 1))))
    if not spread:
        return 1.0
    distance = abs(rank_sum - size * (ran + 1) / 2) - 0.5
    return min(1.0, 2 * NormalDist().cdf(-distance / spread))


def holm(p_values: Sequence[float | None]) -> tuple[list[float | None], int]:
    """Return the p-values adjusted for all of them being looked at (Holm 1979), in the given order, and how many they are.

    None, in the place of a test that was not made, stays None.
    """
    made = sorted((value, index) for index, value in enumerate(p_values) if value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (value, index) in enumerate(made):
        adjusted[index] = highest = max(highest, min(1.0, (len(made) - rank) * value))
    return adjusted, len(made)


def difference_interval(first: Counts, second: Counts) -> tuple[float, float]:
    """Return the interval of the second pass rate minus the first (Newcombe 1998, method 10: from two Wilson intervals).

    Both samples hold at least one run.
    """
    (passed_1, ran_1), (passed_2, ran_2) = ((counts[0], sum(counts)) for counts in (first, second))
    rate_1, rate_2 = passed_1 / ran_1, passed_2 / ran_2
    (low_1, high_1), (low_2, high_2) = wilson(passed_1, ran_1), wilson(passed_2, ran_2)
    size = rate_2 - rate_1
    return size - math.hypot(rate_2 - low_2, high_1 - rate_1), size + math.hypot(high_2 - rate_2, rate_1 - low_1)


class Shift(NamedTuple):
    """The difference of the second sample from the first."""

    difference: float
    """Hodges-Lehmann: the median of all differences between a value of the second sample and one of the first."""
    ratio: float | None
    """Median of the second divided by that of the first; None when the first is 0."""
    delta: float
    """Cliff's delta: the share of pairs in which the second is larger, minus the share in which it is smaller."""


def shift(first: Sequence[float], second: Sequence[float]) -> Shift:
    """Return the sizes of the difference between two samples, each of at least one value."""
    pairs = [value - other for value in second for other in first]
    before, after = float(median(first)), float(median(second))
    delta = (sum(pair > 0 for pair in pairs) - sum(pair < 0 for pair in pairs)) / len(pairs)
    return Shift(float(median(pairs)), after / before if before else None, delta)


@lru_cache(4096)
def least_fisher(first: Counts, second: Counts) -> float:
    """Return the smallest p-value that Fisher's test could give had the same passes fallen otherwise."""
    ran_1, ran_2, passed = sum(first), sum(second), first[0] + second[0]
    extremes = {max(0, passed - ran_2), min(passed, ran_1)}
    return min(fisher((x, ran_1 - x), (passed - x, ran_2 - passed + x)) for x in extremes)


def most_noticed(strata: Sequence[tuple[Counts, Counts]], level: float) -> int | None:
    """Return the most passes of all second samples together that `stratified` finds fewer than the first at `level`.

    The second samples are taken to pass as the first did, but for losses spread evenly over them. None: not even the
    loss of every pass would be found.
    """
    expected = [round(first[0] / sum(first) * sum(second)) for first, second in strata]
    total = sum(expected)

    def is_found(passes: int) -> bool:
        lost, left = total - passes, list(expected)
        while lost:
            able = [index for index, number in enumerate(left) if number][:lost]
            for index in able:
                left[index] -= 1
            lost -= len(able)
        hurt = [(first, (number, sum(second) - number)) for (first, second), number in zip(strata, left, strict=True)]
        return stratified_difference(hurt) < 0 and stratified(hurt) <= level

    if not total or not is_found(0):
        return None
    low, high = 0, total - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_found(middle) else (low, middle - 1)
    return low


def least_mann_whitney(first: int, second: int) -> float:
    """Return the smallest p-value that the exact Mann-Whitney test can give for samples of these sizes."""
    return min(1.0, 2 / math.comb(first + second, first)) if first and second else 1.0


@lru_cache(4096)
def lowest_unsuspicious(first: Counts, ran: int, level: float) -> int:
    """Return the fewest passes among `ran` new runs that Fisher's test does not call fewer than `first` at `level`.

    One pass less would have been found; 0 says that not even a total loss would have been.
    """
    rate = first[0] / sum(first) if sum(first) else 0.0
    low, high = 0, math.ceil(rate * ran)
    while low < high:
        middle = (low + high) // 2
        found = middle < rate * ran and fisher(first, (middle, ran - middle)) <= level
        low, high = (middle + 1, high) if found else (low, middle)
    return low


@lru_cache(4096)
def least_delta(first: int, second: int, level: float) -> float | None:
    """Return the smallest Cliff's delta that the Mann-Whitney test finds at `level` among values without ties.

    None when samples of these sizes cannot show any difference.
    """
    if least_mann_whitney(first, second) > level:
        return None
    low, high = 0, first * second // 2
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if mann_whitney(*_with_wins(first, second, middle)) <= level else (low, middle - 1)
    return 1 - 2 * low / (first * second)


def _with_wins(first: int, second: int, wins: int) -> tuple[list[float], list[float]]:
    """Return two samples without ties in which a value of the first is larger in exactly `wins` pairs."""
    above, rest = divmod(wins, second)
    others = [float(value) for value in range(1, second + 1)]
    own = [second + 1.0 + i for i in range(above)]
    if rest:
        own.append(rest + 0.5)
    own += [-float(i) for i in range(first - len(own))]
    return own, others


# --- from all to none -------------------------------------------------------------------------------------------------


COLLAPSE = 3
"""Decided runs on each side from which on the fall from all to none is a regression by definition: to a test that is corrected for
many, three passes and then three failures are no evidence (Fisher's exact test: p = 0.1), and yet the case is plainly broken. A case
with a true pass rate of one half collapses so by chance in 1 of 64 comparisons, one with 0.9 in 1 of 1 400."""
REASON = "it passed every time and fails every time now"

_MOST_REPETITIONS = 1000


def shows_collapse(first: Outcomes, second: Outcomes) -> bool:
    """Return whether there are runs enough to call the fall from all to none a regression."""
    return not first.failed and first.passed >= COLLAPSE and second.passed + second.failed >= COLLAPSE


def unnoticed(cases: Sequence[CaseComparison], level: float) -> list[str]:
    """Return that the failure of all runs of some cases would not have been noticed, and how many repetitions would show it.

    Args:
        level: the p-value from which on a test is significant.
    """
    blind = [case for case in cases if _is_blind(case.pass_rate)]
    if not blind:
        return []
    first = blind[0]
    title = case_title(first.case_id, first.model_id)
    needed = max(_repetitions(case.pass_rate.first, level) for case in blind)
    return [
        f"{len(blind)} of {len(cases)} case{'s' * (len(cases) > 1)}, such as {title!r}: even if all runs had failed, this would not "
        f"have been called a regression; {needed} repetitions in both campaigns would show it."
    ]


def _is_blind(rate: RateTest) -> bool:
    return bool(
        rate.difference is not None and rate.first.passed and rate.noticed_at is None and rate.verdict != "regression"
    )


def _repetitions(before: Outcomes, level: float) -> int:
    """Return the repetitions with which the failure of all runs shows, of a case that passes as often as before."""
    if not before.failed:
        return COLLAPSE
    rate = before.passed / (before.passed + before.failed)
    for number in range(COLLAPSE, _MOST_REPETITIONS):
        passed = int(rate * number + 1e-9)
        if passed and fisher((passed, number - passed), (0, number)) <= level:
            return number
    return _MOST_REPETITIONS

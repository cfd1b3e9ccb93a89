"""Two samples compared: tests, their correction, sizes of differences, and what could have been found at all.

Pure functions. scipy computes the tests and is imported when one is asked for, because `scipy.stats` alone takes longer
to import than a small campaign takes to judge. What one sample says of itself is in `engine/pass_rate.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import median
from typing import Any, NamedTuple

from clawtrace.engine.pass_rate import wilson

__all__ = [
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
    "stratified",
    "stratified_difference",
]

_MOST_ARRANGEMENTS = 1000
"""Samples with ties are compared by all their arrangements up to this many (some 30 ms), else by the normal approximation."""

_SLACK = 1 + 1e-7
"""Probabilities that are equal but for rounding count as equal, as scipy has it in Fisher's test."""

Counts = tuple[int, int]
"""Passes and failures."""


def fisher(first: Counts, second: Counts) -> float:
    """Return the two-sided p-value of Fisher's exact test: were both drawn with the same pass rate?"""
    from scipy.stats import fisher_exact

    return float(fisher_exact([first, second]).pvalue)


def stratified(strata: Sequence[tuple[Counts, Counts]]) -> float:
    """Return the two-sided p-value of the exact test of one pass rate ratio over several pairs of samples.

    Given each pair's totals, the passes of its second sample are hypergeometric; their sum over the pairs is compared
    with its exact distribution (Cox 1958, the exact form of the Mantel-Haenszel test). Of one pair it is Fisher's test.
    """
    import numpy as np
    from scipy.stats import hypergeom

    chances, offset = np.ones(1), 0
    for first, second in strata:
        ran, passed, drawn = sum(first) + sum(second), first[0] + second[0], sum(second)
        low = max(0, drawn - (ran - passed))
        own = hypergeom.pmf(np.arange(low, min(passed, drawn) + 1), ran, passed, drawn)
        chances, offset = np.convolve(chances, own), offset + low
    seen = chances[sum(second[0] for _, second in strata) - offset]
    return min(1.0, float(chances[chances <= seen * _SLACK].sum()))


def stratified_difference(strata: Sequence[tuple[Counts, Counts]]) -> float:
    """Return the second pass rate minus the first over several pairs of samples (Mantel and Haenszel's weights)."""
    weights = [sum(first) * sum(second) / (sum(first) + sum(second)) for first, second in strata]
    rates = [second[0] / sum(second) - first[0] / sum(first) for first, second in strata]
    return sum(weight * rate for weight, rate in zip(weights, rates, strict=True)) / sum(weights)


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p-value of the Mann-Whitney test: does one sample tend to larger values?

    Exact for small samples, with ties as well; the normal approximation with tie and continuity correction for others.
    """
    from scipy.stats import PermutationMethod, mannwhitneyu

    method: Any = "auto"
    arrangements = math.comb(len(first) + len(second), len(first))
    if len({*first, *second}) < len(first) + len(second) and arrangements <= _MOST_ARRANGEMENTS:
        method = PermutationMethod(n_resamples=arrangements)
    return float(mannwhitneyu(first, second, alternative="two-sided", method=method).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted for all of them being looked at (Holm 1979), in the given order."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, highest = [1.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


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
    """How far the second sample lies from the first."""

    median_first: float
    median_second: float
    difference: float
    """Hodges-Lehmann: the median of all differences between a value of the second sample and one of the first."""
    ratio: float | None
    """Median of the second divided by that of the first; None when the first is 0."""
    delta: float
    """Cliff's delta: the share of pairs in which the second is larger, minus the share in which it is smaller."""


def shift(first: Sequence[float], second: Sequence[float]) -> Shift:
    """Return the sizes of the difference between two samples, each of at least one value."""
    import numpy as np

    pairs = np.subtract.outer(np.asarray(second, float), np.asarray(first, float))
    before, after = float(median(first)), float(median(second))
    return Shift(
        before, after, float(np.median(pairs)), after / before if before else None, float(np.sign(pairs).mean())
    )


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

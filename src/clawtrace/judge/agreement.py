"""How far two lists of scores agree: Cohen's kappa, Spearman's rank correlation, mean absolute error.

The formulas are short, and `scipy`, which the tests compare them with, is large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import correlation, fmean

__all__ = ["kappa", "mean_absolute_error", "spearman", "squared"]


def _differs(first: float, second: float) -> float:
    return float(first != second)


def squared(first: float, second: float) -> float:
    """Return the quadratic weight of a disagreement: twice as far apart counts four times."""
    return (first - second) ** 2


def kappa(
    first: Sequence[float], second: Sequence[float], weight: Callable[[float, float], float] = _differs
) -> float | None:
    """Return Cohen's kappa: 1 is full agreement, 0 what chance gives.

    Args:
        first: categories that one rater gave, as numbers.
        second: those that the other gave, in the same order.
        weight: how much a disagreement counts; by default each counts the same.

    Returns:
        None where it is undefined: both raters always gave one and the same category.
    """
    by_chance = fmean(weight(one, other) for one in first for other in second)
    if by_chance == 0:
        return None
    return 1 - fmean(map(weight, first, second)) / by_chance


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the correlation of ranks, equal values sharing one; None where one side has no two different values."""
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return correlation(_ranks(first), _ranks(second))


def mean_absolute_error(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how far apart the scores are on average."""
    return fmean(abs(one - other) for one, other in zip(first, second, strict=True))


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: ordered.index(value) for value in set(values)}
    return [first[value] + (ordered.count(value) + 1) / 2 for value in values]

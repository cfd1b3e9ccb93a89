"""How far two lists of scores agree: Cohen's kappa, Spearman's rank correlation, mean absolute error, and their intervals.

The formulas are short, and `scipy`, which the tests compare them with, is large.
"""

from __future__ import annotations

import operator
import random
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import correlation, fmean

__all__ = ["interval", "kappa", "mean_absolute_error", "spearman", "squared"]

_RESAMPLES = 1000
_CONFIDENCE = 0.95


def squared(first: float, second: float) -> float:
    """Return the quadratic weight of a disagreement: twice as far apart counts four times."""
    return (first - second) ** 2


def kappa(
    first: Sequence[float], second: Sequence[float], weight: Callable[[float, float], float] = operator.ne
) -> float | None:
    """Return Cohen's kappa: 1 is full agreement, 0 what chance gives.

    Args:
        first: categories that one rater gave, as numbers.
        second: those that the other gave, in the same order.
        weight: how much a disagreement counts; by default each counts the same.

    Returns:
        None where it is undefined: both raters always gave one and the same category.
    """
    ones, others = Counter(first).items(), Counter(second).items()
    apart = sum(many * more * weight(one, other) for one, many in ones for other, more in others)
    by_chance = apart / (len(first) * len(second))
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


def interval(
    measure: Callable[[Sequence[float], Sequence[float]], float | None], first: Sequence[float], second: Sequence[float]
) -> tuple[float, float] | None:
    """Return the 95 % interval of a measure over examples like these: the percentiles of 1,000 draws with replacement.

    The draws are the same at each call. A draw of which the measure is undefined, such as one without any failed example, is left
    out.

    Args:
        measure: of two lists.
        first: scores of one rater.
        second: those of the other, in the same order.

    Returns:
        the lower and the upper end; None where the measure is undefined, or for more than half of the draws.
    """
    chance, places, found = random.Random(0), range(len(first)), []
    if measure(first, second) is None:
        return None
    for _ in range(_RESAMPLES):
        drawn = chance.choices(places, k=len(first))
        value = measure([first[place] for place in drawn], [second[place] for place in drawn])
        if value is not None:
            found.append(value)
    if len(found) < _RESAMPLES / 2:
        return None
    found.sort()
    tail = round((1 - _CONFIDENCE) / 2 * len(found))
    return found[tail], found[-1 - tail]


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    first = {value: ordered.index(value) for value in set(values)}
    return [first[value] + (ordered.count(value) + 1) / 2 for value in values]

"""Several scores become one: median, mean, majority vote, minimum (spec: config.md §4)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean, median
from typing import Literal, NamedTuple, TypeVar

__all__ = ["Method", "PossibleScores", "bounds", "combine", "sample", "spread"]

Method = Literal["median", "mean", "majority_vote", "all_pass"]
Item = TypeVar("Item")


def combine(method: Method, scores: Sequence[float], threshold: float | None) -> float:
    """Return the score that several scores amount to.

    `majority_vote` gives the median of the side that has the majority: of the scores that reach the threshold where they are
    more than half, else of the others. `all_pass` gives the minimum.
    """
    if method == "mean":
        return fmean(scores)
    if method == "all_pass":
        return min(scores)
    if method == "majority_vote":
        assert threshold is not None  # the profile is refused without
        reached = [one for one in scores if one >= threshold]
        return median(reached if 2 * len(reached) > len(scores) else [one for one in scores if one < threshold])
    return median(scores)


class PossibleScores(NamedTuple):
    """What the score could be, had every answer come that was asked for."""

    low: float
    high: float


def bounds(
    method: Method, runs: Sequence[tuple[Sequence[float], int]], threshold: float | None, scale: tuple[float, float]
) -> PossibleScores:
    """Return the lowest and the highest final score that is possible, given each judge run's scores and how many more were wanted."""
    ends = []
    for worst in scale:
        of_runs = [combine(method, [*scores, *[worst] * lacking], threshold) for scores, lacking in runs]
        ends.append(combine(method, of_runs, threshold))
    return PossibleScores(*ends)


def sample(items: Sequence[Item], size: int | None, seed: str) -> list[Item]:
    """Return `size` of `items`, in their order, always the same ones for the same seed; all where there are no more."""
    if size is None or size >= len(items):
        return list(items)
    chosen = sorted(random.Random(seed).sample(range(len(items)), size))
    return [items[place] for place in chosen]


def spread(scores: Sequence[float]) -> float:
    """Return how far apart the scores are."""
    return max(scores) - min(scores) if scores else 0.0

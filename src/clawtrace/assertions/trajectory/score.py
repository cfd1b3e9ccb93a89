"""Scores of the called tools against an expected list: recall, precision and their harmonic mean, in every world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from clawtrace.assertions.forms.form import Row
from clawtrace.assertions.forms.order import OrderedRows
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.support.attribute_docs import Documented

__all__ = ["Score", "ScoreBound", "score"]


class ScoreBound(Documented):
    """A part of the list that is enough."""

    metric: Literal["recall", "precision", "f1"]
    """`recall`: the share of what is expected that was called; `precision`: the share of the calls that is expected; `f1`: the harmonic
    mean of both."""
    min: Annotated[float, Field(strict=True, gt=0, le=1)]
    """The smallest score that is right."""


class Score(NamedTuple):
    """A score from its least to its greatest possible value, and what it is made of."""

    low: float
    high: float
    met: int
    """Expected calls that were made for sure."""
    expected: int


def score(asked: ScoreBound, expected: Sequence[Matcher], recorded: OrderedRows, *, in_order: bool) -> Score:
    """Return the score of what was called.

    Args:
        in_order: the longest part of the list counts that was called in its order, by the calls' starts; else any order does.
    """
    known = [one for one in recorded.rows if one["name"] is not None and (one["start_ns"] is not None or not in_order)]
    if in_order:
        known.sort(key=lambda one: (one["start_ns"], one["no"]))
    most_calls: float = len(recorded.rows)
    open_calls: float = len(recorded.rows) - len(known)
    for gap in recorded.gaps:
        most = float("inf") if gap["at_most"] is None else gap["at_most"]
        most_calls += most
        if gap["name"] is None or any(tool(gap["name"]) for tool in expected):
            open_calls += most
    meet = _longest if in_order else _matched
    met = meet(expected, [one for one in known if one["certain"]])
    most_met = min(len(expected), meet(expected, known) + open_calls)
    fewest_calls = sum(bool(one["certain"]) for one in recorded.rows)
    low = _value(asked.metric, met, len(expected), most_calls)
    high = _value(asked.metric, most_met, len(expected), max(fewest_calls, most_met))
    return Score(low, high, met, len(expected))


def _value(metric: str, met: float, expected: int, calls: float) -> float:
    if metric == "recall":
        return met / expected
    if metric == "precision":
        return met / calls if calls else 0.0
    return 2 * met / (expected + calls)


def _longest(expected: Sequence[Matcher], calls: Sequence[Row]) -> int:
    """Return the length of the longest common subsequence."""
    best = [0] * (len(expected) + 1)
    for call in calls:
        before = best
        best = [0]
        for place, tool in enumerate(expected):
            best.append(before[place] + 1 if tool(call["name"]) else max(before[place + 1], best[place]))
    return best[-1]


def _matched(expected: Sequence[Matcher], calls: Sequence[Row]) -> int:
    """Return how many expected calls can each have a call to itself: a maximum matching, by augmenting paths."""
    taken: dict[int, int] = {}

    def finds(place: int, seen: set[int]) -> bool:
        for number, call in enumerate(calls):
            if number not in seen and expected[place](call["name"]):
                seen.add(number)
                if number not in taken or finds(taken[number], seen):
                    taken[number] = place
                    return True
        return False

    return sum(finds(place, set()) for place in range(len(expected)))

"""Ordered and strict expectations over calls that may overlap: exact search, pure functions.

A choice of distinct calls c1..cn meets an ordered expectation when ``start(ci) < end(cj)`` for all i < j: some order
that respects "a ended before b started" meets it (spec: assertions.md §3). A call without length is taken as one
nanosecond long, so that calls of the same clock tick are concurrent and not, absurdly, each before the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["STEP_LIMIT", "SearchLimitError", "TimedCall", "linearises", "matched", "reach"]

STEP_LIMIT = 200_000
"""How many states one search may visit; beyond it the answer is unknown, and said to be."""


class SearchLimitError(Exception):
    """The search visited `STEP_LIMIT` states without an answer."""


class TimedCall(NamedTuple):
    """One call as the search sees it."""

    items: frozenset[int]
    """Indexes of the expectations that its name meets."""
    start: float
    end: float
    """After `start`."""


def reach(calls: Iterable[TimedCall], wanted: int) -> int:
    """Return how many of the expectations 0 .. `wanted` - 1, taken from the first, can be met in order.

    Where nothing overlaps a cut, all calls before it precede all calls after it; so each group of overlapping calls is
    searched alone, and going as far as possible in it is best.

    Raises:
        SearchLimitError: too many overlapping calls of the same names.
    """
    met = 0
    group: list[TimedCall] = []
    latest = float("-inf")
    for call in sorted(calls, key=lambda call: (call.start, call.end)):
        if group and call.start >= latest:
            met = _furthest(group, met, wanted)
            group = []
        group.append(call)
        latest = max(latest, call.end)
    return _furthest(group, met, wanted) if group else met


def _furthest(group: Sequence[TimedCall], first: int, wanted: int) -> int:
    """Return the expectation that is reached when `first` is the next one and only `group` may be used."""
    if len(group) == 1:
        return first + 1 if first in group[0].items else first
    # A call is worth remembering as used only while an expectation that it meets is still to come.
    useful = [
        sum(1 << number for number, call in enumerate(group) if any(item >= place for item in call.items))
        for place in range(wanted + 1)
    ]
    best = first
    seen: set[tuple[int, float, int]] = set()
    waiting = [(first, float("-inf"), 0)]
    while waiting:
        place, latest, used = waiting.pop()
        best = max(best, place)
        if best == wanted or best - first == len(group):
            return best
        state = (place, latest, used & useful[place])
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > STEP_LIMIT:
            raise SearchLimitError
        waiting.extend(_continuations(group, place, latest, used))
    return best


def _continuations(group: Sequence[TimedCall], place: int, latest: float, used: int) -> list[tuple[int, float, int]]:
    """Return the states after meeting expectation `place`, the most promising last."""
    free: dict[frozenset[int], int] = {}
    later: dict[tuple[frozenset[int], float, float], int] = {}
    for number, call in enumerate(group):
        if used >> number & 1 or place not in call.items or call.end <= latest:
            continue
        if call.start > latest:
            later.setdefault((call.items, call.start, call.end), number)
        elif call.items not in free or call.end < group[free[call.items]].end:
            # Among calls that start before `latest` the one that ends first is the least useful later on.
            free[call.items] = number
    states = [
        (place + 1, group[number].start, used | 1 << number)
        for number in sorted(later.values(), key=lambda number: -group[number].start)
    ]
    states.extend((place + 1, latest, used | 1 << number) for number in free.values())
    return states


def linearises(calls: Sequence[TimedCall], wanted: int) -> bool:
    """Return whether one order of all `calls` that respects "ended before started" meets the whole list.

    Among calls of one name that could come next, the one that ends first is as good as any: it is the one that holds
    the others back. Only names that meet several expectations make this a search.

    Raises:
        SearchLimitError: too many overlapping calls.
    """
    if len(calls) != wanted:
        return False
    seen: set[int] = set()
    waiting = [0]
    while waiting:
        used = waiting.pop()
        place = used.bit_count()
        if place == wanted:
            return True
        if used in seen:
            continue
        seen.add(used)
        if len(seen) > STEP_LIMIT:
            raise SearchLimitError
        waiting.extend(used | 1 << number for number in _next_calls(calls, used, place))
    return False


def _next_calls(calls: Sequence[TimedCall], used: int, place: int) -> list[int]:
    """Return, for each kind of name, the call that may come next and ends first."""
    open_calls = [number for number in range(len(calls)) if not used >> number & 1]
    ends = sorted(calls[number].end for number in open_calls)
    choice: dict[frozenset[int], int] = {}
    for number in open_calls:
        call = calls[number]
        others_end = ends[1] if len(ends) > 1 and call.end == ends[0] else ends[0]
        if place not in call.items or (len(ends) > 1 and call.start >= others_end):
            continue
        if call.items not in choice or call.end < calls[choice[call.items]].end:
            choice[call.items] = number
    return list(choice.values())


def matched(available: Sequence[tuple[frozenset[int], int]], wanted: int) -> int:
    """Return how many of `wanted` expectations can be met at once, each by a call of its own.

    Args:
        available: for each tool name the expectations that it meets and the number of its calls.
        wanted: number of expectations.
    """
    assigned: list[list[int]] = [[] for _ in available]

    def assign(item: int, tried: set[int]) -> bool:
        for number, (items, capacity) in enumerate(available):
            if item not in items or number in tried:
                continue
            tried.add(number)
            if len(assigned[number]) < capacity:
                assigned[number].append(item)
                return True
            for place, other in enumerate(assigned[number]):
                if assign(other, tried):
                    assigned[number][place] = item
                    return True
        return False

    return sum(assign(item, set()) for item in range(wanted))

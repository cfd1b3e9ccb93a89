"""Model spans around several answered calls: an agent's or a workflow's span that says it is a model call.

Requests side by side inside of one model span are the attempts of one call, as long as one of them was answered at most.
Several answers are several calls: the span around them is no separate call, and goes with the first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.calls.rules import SEVERAL_ANSWERS
from clawtrace.facts.calls.tree.walk import Walked
from clawtrace.facts.spans.span import Span

__all__ = ["split_calls"]


def split_calls(spans: Sequence[Span], walked: Walked, ledger: Ledger) -> None:
    """Split calls of which one instrumentation recorded two answers at one level: each answer is a call."""
    members: dict[int, list[int]] = {}
    for index, (span, number) in enumerate(zip(spans, ledger.group, strict=True)):
        if span.kind == "llm" and number is not None:
            members.setdefault(number, []).append(index)
    waiting = [of for of in members.values() if len(of) > 2]
    while waiting:
        parts = _parts(spans, walked, waiting.pop())
        for part in parts[1:]:
            ledger.split(part, SEVERAL_ANSWERS)
        if len(parts) > 1:
            waiting += [part for part in parts if len(part) > 2]


def _parts(spans: Sequence[Span], walked: Walked, members: list[int]) -> list[list[int]]:
    """Return the members of one call as those of several, by the answers of the topmost level that has two."""
    levels: dict[tuple[int, str], list[int]] = {}
    for index in members:
        if spans[index].answered:
            levels.setdefault((walked.depth[index], spans[index].scope), []).append(index)
    repeated = [level for level, answers in levels.items() if len(answers) > 1]
    if not repeated:
        return [members]
    place = _Places(spans, walked, levels[min(repeated)])
    parts: list[list[int]] = [[] for _ in place.answers]
    for index in members:
        parts[place.of(index)].append(index)
    return parts


class _Places:
    """Which of several answers of one level a span belongs to."""

    def __init__(self, spans: Sequence[Span], walked: Walked, answers: Sequence[int]) -> None:
        self.answers = answers
        """In order of start."""
        self._spans = spans
        self._walked = walked
        self._starts = [spans[answer].start_ns for answer in answers]
        self._by_enter = sorted(range(len(answers)), key=lambda place: walked.enter[answers[place]])
        self._enters = [walked.enter[answers[place]] for place in self._by_enter]

    def of(self, index: int) -> int:
        """Return the place of the answer that a span is or is inside of, else of the next one."""
        nearest = bisect_right(self._enters, self._walked.enter[index]) - 1
        if nearest >= 0:
            place = self._by_enter[nearest]
            if self._walked.leave[index] <= self._walked.leave[self.answers[place]]:
                return place
        return min(bisect_left(self._starts, self._spans[index].start_ns), len(self.answers) - 1)

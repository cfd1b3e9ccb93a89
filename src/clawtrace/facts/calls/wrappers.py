"""Model spans around several answered calls: an agent's or a workflow's span that says it is a model call.

Requests side by side inside of one model span are the attempts of one call, as long as one of them was answered at most.
Several answers are several calls: the span around them is no call of its own, and goes with the first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from clawtrace.facts.calls.walk import Walked
from clawtrace.facts.spans.span import Span

__all__ = ["told_apart"]


def told_apart(spans: Sequence[Span], walked: Walked) -> list[int | None]:
    """Return for each span its group, where no call has two answers from one scope at one level."""
    members: dict[int, list[int]] = {}
    for index, (span, number) in enumerate(zip(spans, walked.group, strict=True)):
        if span.kind == "llm" and number is not None:
            members.setdefault(number, []).append(index)
    waiting = [of for of in members.values() if len(of) > 2]
    if not waiting:
        return walked.group
    group = list(walked.group)
    new = max(number for number in group if number is not None)
    while waiting:
        parts = _parts(spans, walked, waiting.pop())
        for part in parts[1:]:
            new += 1
            for index in part:
                group[index] = new
        if len(parts) > 1:
            waiting += [part for part in parts if len(part) > 2]
    return group


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

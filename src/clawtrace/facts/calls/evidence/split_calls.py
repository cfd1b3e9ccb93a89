"""Model spans around several answered calls: an agent's or a workflow's span that says it is a model call.

Requests side by side inside of one model span are the attempts of one call, as long as one of them was answered at most.
Several answers are several calls: the span around them is no separate call, and goes with the first. A tool that ran between
two requests was asked for in the first one's answer, whatever is recorded of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.calls.rules import SEVERAL_ANSWERS
from clawtrace.facts.calls.tree.walk import Walked
from clawtrace.facts.spans.span import CLOCK_NS, Span

__all__ = ["split_calls"]


def split_calls(spans: Sequence[Span], walked: Walked, ledger: Ledger) -> None:
    """Split calls of which one instrumentation recorded two answers at one level: each answer is a call."""
    members: dict[int, list[int]] = {}
    for index, (span, number) in enumerate(zip(spans, ledger.group, strict=True)):
        if span.kind == "llm" and number is not None:
            members.setdefault(number, []).append(index)
    waiting = [of for of in members.values() if len(of) > 2]
    tools = _tools(spans, walked) if waiting else {}
    while waiting:
        parts = _parts(spans, walked, tools, waiting.pop())
        for part in parts[1:]:
            ledger.split(part, SEVERAL_ANSWERS)
        if len(parts) > 1:
            waiting += [part for part in parts if len(part) > 2]


def _tools(spans: Sequence[Span], walked: Walked) -> dict[int, list[int]]:
    """Return the tool spans of each depth, in the order of the walk."""
    found: dict[int, list[int]] = {}
    for index in sorted((i for i, span in enumerate(spans) if span.kind == "tool"), key=walked.enter.__getitem__):
        found.setdefault(walked.depth[index], []).append(index)
    return found


def _parts(
    spans: Sequence[Span], walked: Walked, tools: Mapping[int, Sequence[int]], members: list[int]
) -> list[list[int]]:
    """Return the members of one call as those of several, by the answers of the topmost level that has two."""
    levels: dict[tuple[int, str], list[int]] = {}
    for index in members:
        levels.setdefault((walked.depth[index], spans[index].scope), []).append(index)
    around = min(members, key=walked.depth.__getitem__)
    answered = {
        level: _answers(spans, of, _inside(spans, walked, tools.get(level[0], ()), around) if len(of) > 1 else ())
        for level, of in levels.items()
    }
    repeated = [level for level, answers in answered.items() if len(answers) > 1]
    if not repeated:
        return [members]
    place = _Places(spans, walked, answered[min(repeated)])
    parts: list[list[int]] = [[] for _ in place.answers]
    for index in members:
        parts[place.of(index)].append(index)
    return parts


def _inside(spans: Sequence[Span], walked: Walked, tools: Sequence[int], around: int) -> list[Span]:
    """Return those of the tools that are inside of a span, in order of start."""
    enter = walked.enter.__getitem__
    first, last = bisect_left(tools, enter(around), key=enter), bisect_right(tools, walked.leave[around], key=enter)
    return sorted((spans[index] for index in tools[first:last]), key=_start)


def _answers(spans: Sequence[Span], members: Sequence[int], tools: Sequence[Span]) -> list[int]:
    """Return which model spans of one level are answers: those that record one, and one before and after each tool."""
    rounds: list[list[int]] = [[members[0]]]
    for before, index in pairwise(members):
        if _ran_between(spans[before], spans[index], tools):
            rounds.append([])
        rounds[-1].append(index)
    found: list[int] = []
    for of in rounds:
        answered = [index for index in of if spans[index].answered]
        found += answered or (of[-1:] if len(rounds) > 1 else ())
    return found


def _ran_between(before: Span, after: Span, tools: Sequence[Span]) -> bool:
    """Return whether a tool ran after one request had begun and before the next one; a generator's span ends after its tools."""
    first = bisect_left(tools, before.start_ns, key=_start)
    last = bisect_right(tools, after.start_ns, key=_start)
    return any(tool.last_ns <= after.start_ns + CLOCK_NS for tool in tools[first:last])


def _start(span: Span) -> int:
    return span.start_ns


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

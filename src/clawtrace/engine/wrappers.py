"""Model spans around several answered calls: an agent's or a workflow's span that says it is a model call.

Requests side by side inside of one model span are the attempts of one call, as long as one of them was answered at most.
Several answers are several calls: the span around them is no call of its own, and goes with the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.engine.span import Span
from clawtrace.engine.walk import Walked

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
    answers = levels[min(repeated)]
    parts: list[list[int]] = [[] for _ in answers]
    for index in members:
        parts[_place(spans, walked, answers, index)].append(index)
    return parts


def _place(spans: Sequence[Span], walked: Walked, answers: Sequence[int], index: int) -> int:
    """Return which of the answers a span belongs to: the one that it is or is inside of, else the next one."""
    for place, answer in enumerate(answers):
        if walked.enter[answer] <= walked.enter[index] and walked.leave[index] <= walked.leave[answer]:
            return place
    after = (place for place, answer in enumerate(answers) if spans[answer].start_ns >= spans[index].start_ns)
    return next(after, len(answers) - 1)

"""Spans of a process whose clock differs from that of the process that started it (spec: span-model.md §4)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Set

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.spans.span import REMOTE_PARENT

__all__ = ["on_another_clock", "untimed"]

_SLACK_NS = 1_000_000_000
_REMOTE_SLACK_NS = 100_000_000
"""How much earlier than its parent a span may seem to begin: instrumentations that write spans afterwards are not exact within a second,
clocks of servers that are kept in time agree within less than a tenth."""


def on_another_clock(run: RunSpans) -> Mapping[int, int]:
    """Return the spans of which it is unknown when they ran, each with the topmost of them that it is, or is inside of.

    They began before the span that they are in, or are in another process and began after the agent or tool that they are in had ended,
    which waits for what it calls: its clock is ahead, or it was scheduled to work later. What a queue holds between the two tells nothing.
    It makes no difference where all of the run's work is there.
    """
    spans, first = run.spans, run.spans[0].sid
    early, late = set[int](), set[int]()
    for index, span in enumerate(spans):
        if span.parent_sid is None or span.source == "log" or span.start_ns <= 0 or run.cut[index]:
            continue
        remote = (span.flags or 0) & REMOTE_PARENT == REMOTE_PARENT
        slack = _REMOTE_SLACK_NS if remote else _SLACK_NS
        if spans[span.parent_sid - first].start_ns - span.start_ns > slack:
            early.add(index)
        elif remote:
            caller = run.agent[index] if run.tool[index] is None else run.tool[index]
            if (
                caller is not None
                and spans[caller].end_ns is not None
                and span.start_ns - spans[caller].last_ns > slack
            ):
                late.add(index)
    if not early and not late:
        return {}
    tops = run.topmost(early | late)
    enters = [run.enter[top] for top in tops]
    found = {}
    for index in range(len(spans)):
        top = tops[bisect_right(enters, run.enter[index]) - 1]  # before the first one, this is the last
        if top == index or run.encloses(top, index):
            found[index] = top
    apart = early | (untimed(run, found, run.every("agent", "llm", "tool")) if late else set())
    return {index: top for index, top in found.items() if top in apart}


def untimed(run: RunSpans, shifted: Mapping[int, int], rows: Iterable[int | None]) -> Set[int]:
    """Return the topmost spans of another clock that contain some of `rows`, if other rows are neither inside nor around them."""
    if not shifted:
        return frozenset()
    known = [index for index in rows if index is not None]
    held = Counter(shifted[index] for index in known if index in shifted)
    enters, leaves = (sorted(place[index] for index in known) for place in (run.enter, run.leave))
    found = set[int]()
    for top, number in held.items():
        around = bisect_left(enters, run.enter[top]) - bisect_left(leaves, run.enter[top])
        if number + around < len(known):
            found.add(top)
    return found

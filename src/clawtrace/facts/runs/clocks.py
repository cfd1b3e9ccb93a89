"""Spans whose times come from another clock than those around them: what shows it is a child that began before its parent."""

from __future__ import annotations

from collections.abc import Set

from clawtrace.facts.calls.run_spans import RunSpans

__all__ = ["SLACK_NS", "on_another_clock"]

SLACK_NS = 1_000_000_000
"""How much earlier than its parent a span may seem to begin, in nanoseconds: clocks of servers agree within a second."""


def on_another_clock(run: RunSpans) -> Set[int]:
    """Return the spans that began more than `SLACK_NS` before the span that they are in, and all inside of them.

    When they ran is unknown. A span that began long after its parent may have been scheduled by it, and shows nothing.
    """
    first = run.spans[0].sid
    early = [
        index
        for index, span in enumerate(run.spans)
        if span.parent_sid is not None
        and span.parent_sid - first > index  # spans are in order of start
        and run.spans[span.parent_sid - first].start_ns - span.start_ns > SLACK_NS
        and span.source != "log"
        and span.start_ns > 0
        and not run.cut[index]
    ]
    if not early:
        return frozenset()
    inside = run.inside(early)
    return {*early, *(index for index in range(len(run.spans)) if inside(index))}

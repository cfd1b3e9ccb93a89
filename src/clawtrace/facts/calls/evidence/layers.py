"""Spans that describe a tool call in more detail in another place: the process that a shell tool started, in a separate trace.

Which spans and which tools is dialect data (`layers`). Such a span is a layer of the call whose time holds its own; of
several such calls the one that ended next, each of them once. The two sides of one exchange on a wire are one call: both
know its id, and nothing else of that id ran in the time of the outer one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from fnmatch import fnmatchcase
from typing import Any

from clawtrace.dialects.load import Dialect
from clawtrace.dialects.rules import LayerRule
from clawtrace.facts.calls.rules import LAYER_OF_TOOL, SAME_EXCHANGE, CallRule
from clawtrace.facts.spans.span import Span, similar_names

__all__ = ["with_layers"]


def with_layers(spans: Sequence[Span], dialects: Mapping[str, Dialect]) -> tuple[Sequence[Span], dict[int, CallRule]]:
    """Return the spans of one run, in order, those that are layers of a tool call as tool spans below it, and these by `Span.sid`."""
    rules = {name: found for name in {span.dialect for span in spans} if (found := dialects[name].file.layers)}
    if not rules:
        return spans, {}
    by: dict[int, CallRule] = {}
    changed: dict[int, Span] = {}
    for inner, outer in _exchanges(spans).items():
        changed[inner] = spans[inner]._replace(parent_sid=spans[outer].sid)
        by[spans[inner].sid] = SAME_EXCHANGE
    for inner, outer in _held(spans, rules, changed.keys()).items():
        tool = spans[outer]
        changed[inner] = spans[inner]._replace(kind="tool", tool_name=tool.tool_name, parent_sid=tool.sid)
        changed[inner] = changed[inner]._replace(tool_call_id=tool.tool_call_id)
        by[spans[inner].sid] = LAYER_OF_TOOL
    return [changed.get(index, span) for index, span in enumerate(spans)], by


def _held(spans: Sequence[Span], rules: Mapping[str, Sequence[LayerRule]], gone: Set[int]) -> dict[int, int]:
    """Return for each span that is a layer, without those that are `gone`, the tool span that holds its time.

    That is its parent where that is a tool span, else the one that ends next.
    """
    tools = {index for index, span in enumerate(spans) if span.kind == "tool"}
    asked = {
        index: rule
        for index, span in enumerate(spans)
        for rule in rules.get(span.dialect, ())
        if fnmatchcase(span.name, rule.span) and (rule.tools or (index in tools and span.tool_name is not None))
    }
    if not asked:
        return {}
    by_sid = {span.sid: index for index, span in enumerate(spans)}
    outer = sorted(tools - asked.keys())
    names = similar_names(name for index in outer if (name := spans[index].tool_name) is not None)
    holding: dict[int, int] = {}
    """Layers by the tools that hold them."""
    free: dict[int, Sequence[str | bool]] = {}
    """For spans below no tool: the names of the tools that they may be layers of; of any tool, whether it failed."""
    for index in sorted(asked.keys() - gone, key=lambda index: (spans[index].last_ns, index)):
        span = spans[index]
        parent = None if span.parent_sid is None else by_sid.get(span.parent_sid)
        wanted = asked[index].tools or names(span.tool_name or "")
        if parent is None or parent not in tools:
            free[index] = [span.failed or span.tool_failed] if wanted == ["*"] else wanted
        elif parent not in asked and spans[parent].tool_name in wanted and _around(spans[parent], span):
            holding.setdefault(parent, index)
    found = _next_to_end(spans, free, [index for index in outer if index not in holding])
    return found | {inner: tool for tool, inner in holding.items()}


def _next_to_end(spans: Sequence[Span], inner: Mapping[int, Sequence[Any]], outer: Sequence[int]) -> dict[int, int]:
    """Return for each inner span the outer one, of the names or the ends that it wants, that holds its time and ends next; each holds one.

    In order of start so that as many as possible are held: what started before a span and holds it holds later ones, too.
    """
    running: dict[str | bool, list[tuple[int, int]]] = defaultdict(list)
    """Outer spans that have started, by their ends."""
    found: dict[int, int] = {}
    place = 0
    for index, names in sorted(inner.items(), key=lambda entry: (spans[entry[0]].start_ns, entry[0])):
        span = spans[index]
        while place < len(outer) and spans[outer[place]].start_ns <= span.start_ns:
            tool = spans[outer[place]]
            for key in (tool.tool_name or "", tool.failed or tool.tool_failed):
                insort(running[key], (tool.last_ns, outer[place]))
            place += 1
        ends = []
        for name in names:
            of_name = running[name]
            del of_name[: bisect_left(of_name, (span.start_ns, -1))]  # they hold nothing that starts later, either
            at = bisect_left(of_name, (span.last_ns, -1))
            ends += [(of_name[at], name, at)] if at < len(of_name) else []
        if ends:
            (_, found[index]), name, at = min(ends)
            running[name].pop(at)
    return found


def _around(outer: Span, inner: Span) -> bool:
    return outer.start_ns <= inner.start_ns and inner.last_ns <= outer.last_ns


def _exchanges(spans: Sequence[Span]) -> dict[int, int]:
    """Return for each tool span that is the far side of an exchange the span of its near side."""
    sides: dict[tuple[str, str | None, str], list[int]] = {}
    for index, span in enumerate(spans):
        if span.exchange_id is not None and span.tool_name is not None and span.kind == "tool":
            sides.setdefault((span.exchange_id, span.exchange_session, span.tool_name), []).append(index)
    found: dict[int, int] = {}
    for of_id in sides.values():
        for inner in of_id:
            around = [outer for outer in of_id if _holds(spans[outer], spans[inner])]
            if len(around) == 1:
                found[inner] = around[0]
    # A far side that holds another one, or a near side that is held twice, shows that ids are used again.
    outers = Counter(found.values())
    return {inner: outer for inner, outer in found.items() if outer not in found and outers[outer] == 1}


def _holds(outer: Span, inner: Span) -> bool:
    """Return whether one span may be the near side of the other's exchange."""
    return (
        outer.trace_id != inner.trace_id
        and _around(outer, inner)
        and (outer.start_ns, outer.last_ns) != (inner.start_ns, inner.last_ns)
    )

"""Spans that tell more of a tool call and hang elsewhere: the process that a shell tool started, in a trace of its own.

Which spans and which tools is dialect data (`layers`). Such a span is a layer of the call whose time holds its own; of
several such calls the one that ended next, each of them once. The two sides of one exchange on a wire are one call: both
know its id, and nothing else of that id ran in the time of the outer one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from clawtrace.dialects.rules import LayerRule
from clawtrace.engine.span import Span, same_tool

__all__ = ["with_layers"]


def with_layers(spans: Sequence[Span], layers: Callable[[str], Sequence[LayerRule]]) -> Sequence[Span]:
    """Return the spans of one run, those that are layers of a tool call as tool spans below it.

    Args:
        spans: in order of `Span.sid`.
        layers: the rules of a dialect, by its name.
    """
    rules = {dialect: found for dialect in {span.dialect for span in spans} if (found := layers(dialect))}
    if not rules:
        return spans
    holding = _holding(spans, rules)
    changed: dict[int, Span] = {}
    for inner, outer in _exchanges(spans).items():
        changed[inner] = spans[inner]._replace(parent_sid=spans[outer].sid)
        holding.pop(inner, None)
    taken: set[int] = set()
    # What only one call holds goes first, so that it is not taken by what has a choice.
    while holding:
        index = min(holding, key=lambda n: (len(holding[n] - taken), spans[n].last_ns, n))
        free = holding.pop(index) - taken
        if free:
            tool = min(free, key=lambda n: (spans[n].last_ns, n))
            taken.add(tool)
            changed[index] = spans[index]._replace(
                kind="tool", tool_name=spans[tool].tool_name, parent_sid=spans[tool].sid
            )
    return [changed.get(index, span) for index, span in enumerate(spans)]


def _holding(spans: Sequence[Span], rules: dict[str, Sequence[LayerRule]]) -> dict[int, set[int]]:
    """Return for each span that may be a layer the tool spans that hold its time: its parent alone where that is one."""
    tools = {index for index, span in enumerate(spans) if span.kind == "tool"}
    by_sid = {span.sid: index for index, span in enumerate(spans)}
    asked = {
        index: rule
        for index, span in enumerate(spans)
        for rule in rules.get(span.dialect, ())
        if fnmatchcase(span.name, rule.span) and (rule.tools or (index in tools and span.tool_name is not None))
    }
    found: dict[int, set[int]] = {}
    for index, rule in asked.items():
        span = spans[index]
        of_rule = {
            n
            for n in tools - asked.keys()
            if (spans[n].tool_name in rule.tools if rule.tools else same_tool(spans[n].tool_name, span.tool_name))
            and spans[n].start_ns <= span.start_ns
            and span.last_ns <= spans[n].last_ns
        }
        parent = None if span.parent_sid is None else by_sid.get(span.parent_sid)
        found[index] = of_rule & {parent} if parent in tools else of_rule
    return found


def _exchanges(spans: Sequence[Span]) -> dict[int, int]:
    """Return for each tool span that is the far side of an exchange the span of its near side."""
    sides: dict[tuple[str, str], list[int]] = {}
    for index, span in enumerate(spans):
        if span.exchange_id is not None and span.tool_name is not None and span.kind == "tool":
            sides.setdefault((span.exchange_id, span.tool_name), []).append(index)
    found = {}
    for of_id in sides.values():
        for inner in of_id:
            around = [outer for outer in of_id if outer != inner and _holds(spans[outer], spans[inner])]
            if len(around) == 1:
                found[inner] = around[0]
    # A far side that holds another one, or a near side that is held twice, tells that ids are used again.
    outers = list(found.values())
    return {inner: outer for inner, outer in found.items() if outer not in found and outers.count(outer) == 1}


def _holds(outer: Span, inner: Span) -> bool:
    """Return whether one span may be the near side of the other's exchange."""
    return (
        outer.trace_id != inner.trace_id
        and outer.exchange_session == inner.exchange_session
        and outer.start_ns <= inner.start_ns
        and inner.last_ns <= outer.last_ns
        and (outer.start_ns, outer.last_ns) != (inner.start_ns, inner.last_ns)
    )

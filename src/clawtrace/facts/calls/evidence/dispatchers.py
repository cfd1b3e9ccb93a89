"""Tools through which a model calls another tool: both spans are one call, of the other tool.

Which tools these are is dialect data (`dispatchers`). The span of the tool that was called is a child or a sibling of the
dispatcher's, lies in its time, and failed or was blocked if the dispatcher failed. Where there is none (no tool has that name, or the call was refused
before), the dispatcher's span is the call: of the tool that its arguments name, or of the dispatcher where they are unknown.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from clawtrace.dialects.load import Dialect
from clawtrace.dialects.schema import DispatcherRule
from clawtrace.facts.calls.rules import DISPATCHED_TOOL, CallRule
from clawtrace.facts.json_text import read_json
from clawtrace.facts.spans.span import NO_TIME, Span, same_tool

__all__ = ["dispatched", "with_dispatchers"]


def dispatched(rules: Sequence[DispatcherRule], name: str | None, arguments: str | None) -> tuple[str, str] | None:
    """Return the tool named in a dispatcher's call and its arguments as JSON; None if the call is no dispatcher's or names no tool."""
    rule = next((rule for rule in rules if rule.tool == name), None)
    given = None if rule is None else _object(arguments)
    if rule is None or given is None:
        return None
    key = next((key for key in rule.name if given.get(key) is not None), None)
    found = re.search(rule.capture, given[key]) if key is not None and isinstance(given[key], str) else None
    if found is None:
        return None
    inner = next((given[key] for key in rule.arguments if given.get(key)), None)
    if inner is None:
        inner = {key: value for key, value in given.items() if key not in (*rule.name, *rule.arguments)}
    return found[1], inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False, separators=(",", ":"))


def with_dispatchers(
    spans: Sequence[Span], dialects: Mapping[str, Dialect]
) -> tuple[Sequence[Span], Mapping[int, CallRule]]:
    """Return the spans of one run in order, with dispatchers as layers of the calls that they made, and these layers by `Span.sid`."""
    of = {name: rules for name in {span.dialect for span in spans} if (rules := dialects[name].file.dispatchers)}
    outer = [
        index
        for index, span in enumerate(spans)
        if span.dialect in of and _is_call(span) and any(rule.tool == span.tool_name for rule in of[span.dialect])
    ]
    if not outer:
        return spans, {}
    named = {
        index: dispatched(of[spans[index].dialect], spans[index].tool_name, spans[index].tool_arguments)
        for index in outer
    }
    called = _called(spans, named)
    found = list(spans)
    layers: dict[int, CallRule] = {}
    for index, call in named.items():
        span, place = spans[index], called.get(index)
        if place is not None:
            found[place], found[index] = _joined(found[place], span, call)
            if span.kind == "tool":
                layers[span.sid] = DISPATCHED_TOOL
        elif call is not None:
            found[index] = span._replace(tool_name=call[0], tool_arguments=call[1])
    return found, layers


def _joined(inner: Span, outer: Span, call: tuple[str, str] | None) -> tuple[Span, Span]:
    """Return the span of the tool that was called, and its dispatcher's as a layer of it."""
    arguments = call[1] if inner.tool_arguments is None and call is not None else inner.tool_arguments
    parent_sid = outer.parent_sid if inner.parent_sid == outer.sid else inner.parent_sid
    inner = inner._replace(
        parent_sid=parent_sid, tool_call_id=outer.tool_call_id or inner.tool_call_id, tool_arguments=arguments
    )
    outer = outer._replace(
        parent_sid=inner.sid, tool_name=inner.tool_name, tool_call_id=None, tool_arguments=None, tool_result=None,
        emits=None, failed=outer.failed and not _stopped(inner),
    )  # fmt: skip
    return inner, outer


def _is_call(span: Span) -> bool:
    return span.kind == "tool" or span.emits == "background"


def _stopped(span: Span) -> bool:
    return span.failed or span.tool_blocked


def _called(spans: Sequence[Span], named: Mapping[int, tuple[str, str] | None]) -> dict[int, int]:
    """Return for each dispatcher the span of the tool that it called, each once: a child, else a sibling.

    Of several that may be it, the one that ended last. In order of start, latest first, as many as possible find theirs.
    """
    inner: dict[Any, list[int]] = defaultdict(list)
    sids = {spans[index].sid for index in named}
    for index, span in enumerate(spans):
        if _is_call(span) and index not in named and span.tool_name is not None:
            inner[span.parent_sid if span.parent_sid in sids else _home(span)].append(index)
    found: dict[int, int] = {}
    taken: set[int] = set()
    for index in sorted(named, key=lambda n: (-spans[n].start_ns, spans[n].last_ns)):
        span, call = spans[index], named[index]
        last_ns = NO_TIME if span.end_ns is None else span.last_ns
        fitting = [
            (place == span.sid, other.last_ns, n)
            for place in (span.sid, _home(span))
            for n in inner.get(place, ())
            if n not in taken and span.start_ns <= (other := spans[n]).start_ns and other.last_ns <= last_ns
            and (_stopped(other) == span.failed if call is None else same_tool(call[0], other.tool_name))
        ]  # fmt: skip
        if fitting and not span.tool_blocked:  # a blocked dispatcher called nothing
            *_, found[index] = max(fitting)
            taken.add(found[index])
    return found


def _home(span: Span) -> tuple[str, int | None, str | None]:
    """Return the key that siblings share."""
    return span.trace_id, span.parent_sid, span.parent_span_id


def _object(text: str | None) -> dict[str, Any] | None:
    value = read_json(text)
    value = read_json(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else None

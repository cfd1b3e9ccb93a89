"""Spans of no known kind that are named after a requested tool: they are its executions.

Programs trace the functions that are their tools as they trace any other function, by a decorator that knows no kinds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from clawtrace.dialects.load import Dialect
from clawtrace.dialects.message_parts import Part
from clawtrace.dialects.rules import fits
from clawtrace.facts.spans.span import Span

__all__ = ["with_called_tools"]

_FUNCTION = re.compile(r"(?:[Cc]alling )?(?:(?:[\w<>]+\.){2,}|__main__\.)?([\w-]+)(?:\(\))?")
"""A function as tracers name it: with the path of its module, or as a call. `policy.search` is about one, or another one."""


def with_called_tools(
    spans: Sequence[Span],
    parents: Sequence[int | None],
    messages: Mapping[tuple[int, str], Sequence[Part]],
    dialects: Mapping[str, Dialect],
) -> Sequence[Span]:
    """Return the spans of one run, in order of start, those that are called like a requested tool as tool spans.

    None of a tool of which others write tool spans, none of a scope that does, and none inside of another call of it. Where more
    spans are called so than calls were requested, some are something else, or a call has two: all stay what they are.
    """
    asked: dict[str, int] = {}
    requests: Counter[str | None] = Counter()
    for span in spans:
        for part in messages.get((span.sid, "output"), ()) if span.kind == "llm" else ():
            if part.type == "tool_call" and part.name is not None:
                asked.setdefault(part.name, span.start_ns)
                requests[part.name] += 1
    if not asked:
        return spans
    tools = [span for span in spans if span.kind == "tool" or span.emits == "tool"]
    names, scopes = {span.tool_name for span in tools}, {span.scope for span in tools}
    found: dict[int, Span] = {}
    for index, span in enumerate(spans) if asked.keys() - names else ():
        function = _FUNCTION.fullmatch(span.name)
        name = span.name if function is None else function[1]
        if (
            span.kind in ("chain", "other")
            and span.role in (None, "inferred")
            and asked.get(name, span.start_ns) < span.start_ns
            and name not in names
            and span.scope not in scopes
            and not any(
                fits(span.scope, glob) for rule in dialects[span.dialect].file.executions for glob in rule.scopes
            )
            and not _inside(index, parents, found, name)
        ):
            found[index] = span._replace(kind="tool", role=None, tool_name=name)
    called = Counter([span.tool_name for span in found.values()])
    counted = {index: span for index, span in found.items() if called[span.tool_name] <= requests[span.tool_name]}
    return [counted.get(index, span) for index, span in enumerate(spans)] if counted else spans


def _inside(index: int, parents: Sequence[int | None], found: Mapping[int, Span], name: str) -> bool:
    at = parents[index]
    while at is not None and at < index:  # in a cycle, too
        if at in found and found[at].tool_name == name:
            return True
        index, at = at, parents[at]
    return False

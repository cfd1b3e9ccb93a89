"""One linear pass over the spans of a run: the tree, and the calls that it shows.

It is iterative: 5 000 nested spans are ordinary. Spans come in order of start, end and id, and are known by their index in
it; so siblings are visited in order of start, and every result depends on the spans alone, never on the order of their
arrival.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.calls.rules import CallRule
from clawtrace.facts.calls.tree.nesting import NestedCall, NestedCalls, ToolsAbove
from clawtrace.facts.spans.span import Span

__all__ = ["Walked", "walk"]


class Walked(NamedTuple):
    """Lists with one entry per span; spans are identified by their index."""

    enter: list[int]
    leave: list[int]
    depth: list[int]
    root: list[int]
    """Topmost received ancestor."""
    agent: list[int | None]
    """Nearest enclosing agent span, not the span itself."""
    tool: list[int | None]
    """Nearest enclosing tool span below that agent, not the span itself."""
    cause: list[bool]
    """The span failed, and not only because a span below it did."""
    cut: list[bool]
    """The reference to the parent closed a cycle and was cut."""


class _Context(NamedTuple):
    """The context that a span passes to its children."""

    agent: int | None
    tool: int | None
    model_call: NestedCall | None
    """Group of the nearest ancestor among llm, tool and agent spans, if that is an llm span."""
    tools: int | None
    """The outermost tool span above, below the nearest agent."""


_TOP = _Context(None, None, None, None)


def walk(
    spans: Sequence[Span], parents: Sequence[int | None], ledger: Ledger, layers: Mapping[int, CallRule] | None = None
) -> Walked:
    """Walk the `spans` of one run, whose parents have these indices (None: not received), and return the columns.

    Args:
        spans: of one run.
        parents: the index of each span's parent.
        ledger: gets the calls that the tree shows.
        layers: see `NestedCalls`.
    """
    count = len(spans)
    result = Walked(
        [0] * count, [0] * count, [0] * count, list(range(count)), [None] * count, [None] * count,
        [False] * count, [False] * count,
    )  # fmt: skip
    children: dict[int, list[int]] = {}
    tops: list[int] = []
    for index, parent in enumerate(_without_cycles(parents, result.cut)):
        if parent is None:
            tops.append(index)
        else:
            children.setdefault(parent, []).append(index)
    walker = _Walker(spans, children, result, ledger, layers or {})
    for top in tops:
        walker.visit(top)
    return result


def _without_cycles(parents: Sequence[int | None], cut: list[bool]) -> Sequence[int | None]:
    """Return the parents, none of the earliest span of each cycle; note in `cut` which these are."""
    found = list(parents)
    seen = bytearray(len(parents))
    for index in range(len(parents)):
        path: list[int] = []
        at: int | None = index
        while at is not None and not seen[at]:
            seen[at] = 1
            path.append(at)
            at = found[at]
        if at in path:
            first = min(path[path.index(at) :])
            found[first], cut[first] = None, True
    return found


class _Walker:
    """Depth-first visit of one top after the other."""

    def __init__(
        self,
        spans: Sequence[Span],
        children: dict[int, list[int]],
        result: Walked,
        ledger: Ledger,
        layers: Mapping[int, CallRule],
    ) -> None:
        self._spans = spans
        self._children = children
        self._result = result
        self._calls = NestedCalls(spans, ledger, layers)
        self._failures = FailureCauses(spans)
        self._tools = ToolsAbove()
        self._position = 0
        self._named: dict[tuple[str, int | None, str], int] = {}
        """Latest activation of a name: below one parent, and (None) anywhere in the trace."""
        self._around: dict[int | None, _Context] = {}
        """The context below a parent, apart from the steps of agents there."""

    def visit(self, top: int) -> None:
        """Visit the tree below `top`."""
        enter, leave, depth, root, agent, tool, cause, _ = self._result
        spans, children, failures, position = self._spans, self._children, self._failures, self._position
        failing, level = failures.any, 0
        above: list[tuple[Iterator[int], int | None, _Context]] = []
        """For each span that was entered and not left: its remaining children, its index and its children's context."""
        siblings, parent, context = iter((top,)), None, _TOP
        while True:
            for index in siblings:
                position += 1
                enter[index] = position
                root[index] = top
                depth[index] = level
                agent[index], tool[index], _, _ = context
                below = children.get(index)
                inner = self._enter(index, spans[index], context, leaf=not below)
                if spans[index].role == "step":
                    context = inner
                if below:
                    above.append((siblings, parent, context))
                    siblings, parent, context = iter(below), index, inner
                    level += 1
                    break
                position += 1
                leave[index] = position
                if failing:
                    cause[index] = failures.leave(index, parent)
            else:
                if parent is None:
                    break
                left = parent
                if spans[left].kind == "tool":
                    self._tools.leave(left, spans[left])
                siblings, parent, context = above.pop()
                level -= 1
                position += 1
                leave[left] = position
                if failing:
                    cause[left] = failures.leave(left, parent)
        self._position = position

    def _enter(self, index: int, span: Span, context: _Context, *, leaf: bool) -> _Context:
        """Return the context that a span passes to its children; not called for leaves."""
        kind = span.kind
        if span.owner_agent is not None and kind != "agent":
            context = self._owned(index, span, context)
        if kind == "llm":
            call = self._calls.model_call(index, span, context.model_call, self._result.depth[index])
            return context if leaf else _Context(context.agent, context.tool, call, context.tools)
        if kind == "tool":
            if context.model_call is not None:
                (context.model_call.latest or context.model_call).asked = True
            call = self._called(index, span, context)
            if leaf:
                return context
            if span.emits == "agent":
                return _Context(index, None, None, None)
            top = index if context.tools is None else context.tools
            self._tools.enter(index, top, span, self._result.depth[index], call)
            return _Context(context.agent, index, None, top)
        if kind != "agent":
            return context
        if span.agent_name is not None:
            self._named[span.trace_id, None, span.agent_name] = index
            self._named[span.trace_id, span.parent_sid, span.agent_name] = index
        if span.emits == "tool":
            self._called(index, span, context)
        return _Context(index, None, None, None) if span.role != "step" else self._step(index, span, context)

    def _step(self, index: int, span: Span, context: _Context) -> _Context:
        """Return the context of the agent of which the span is a step: also what follows below the same parent is its work."""
        around = self._around.setdefault(span.parent_sid, context)
        before = context.agent if context is not around else None
        if before is not None and self._spans[before].agent_name == span.agent_name is not None:
            return context
        self._result.agent[index], self._result.tool[index] = around.agent, around.tool
        return _Context(index, None, None, None)

    def _called(self, index: int, span: Span, context: _Context) -> NestedCall:
        above = None if context.tools is None else self._tools.nearest(context.tools, span)
        return self._calls.tool_call(index, span, above)

    def _owned(self, index: int, span: Span, context: _Context) -> _Context:
        """Return the context of the agent that the span says it works for, where that is not the one it is nested in.

        Some instrumentations write an activation next to its work: the one below the same parent goes before others.
        """
        owner = span.owner_agent
        if owner is None or (context.agent is not None and self._spans[context.agent].agent_name == owner):
            return context
        found = self._named.get((span.trace_id, span.parent_sid, owner), self._named.get((span.trace_id, None, owner)))
        if found is None:
            return context
        self._result.agent[index], self._result.tool[index] = found, None
        return _Context(found, None, None, None)


def _same_words(one: str | None, other: str | None) -> bool:
    return bool(one and other and (one in other or other in one))


class FailureCauses:
    """Separates failed spans that are a cause from those that only failed because a span below them did."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._below: dict[int, list[int]] = {}
        """Nearest failed spans below a span."""
        self._last_start: dict[int, int] = {}
        """Latest start below a span, itself included."""
        self.any = any(span.failed for span in spans)

    def leave(self, index: int, parent: int | None) -> bool:
        """Record a span whose children have all been left; return whether it is a cause."""
        span = self._spans[index]
        below = self._below.pop(index, [])
        last = max(self._last_start.pop(index, span.start_ns), span.start_ns)
        own = span.failed and span.kind != "infra"
        cause = own and not any(self._passed_on(entry, span.message, last) for entry in below)
        if parent is not None:
            frontier = [index] if own else below
            if frontier:
                siblings = self._below.get(parent, [])
                few, many = sorted((frontier, siblings), key=len)  # a long list goes up many levels as it is
                many += few
                self._below[parent] = many
            self._last_start[parent] = max(self._last_start.get(parent, last), last)
        return cause

    def _passed_on(self, index: int, message: str | None, last_start: int) -> bool:
        span = self._spans[index]
        return _same_words(span.message, message) or last_start <= span.last_ns

"""One linear pass over the spans of a run: the tree, and which spans are one logical call.

It is iterative: 5 000 nested spans are ordinary. Spans come in order of start, end and id, and are known by their index in
it; so siblings are visited in order of start, and every result depends on the spans alone, never on the order of their
arrival.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from clawtrace.facts.spans.span import Span

__all__ = ["Walked", "walk"]

_Identity = str | tuple[str, str]
"""What several spans of one call share: the id of a model's response, or the id and the name of a tool call."""


class Walked(NamedTuple):
    """One entry a span, by index; spans are named by their index."""

    enter: list[int]
    leave: list[int]
    depth: list[int]
    root: list[int]
    """Topmost received ancestor."""
    agent: list[int | None]
    """Nearest enclosing agent span, not the span itself."""
    tool: list[int | None]
    """Nearest enclosing tool span below that agent, not the span itself."""
    group: list[int | None]
    """For llm and tool spans: a number that the spans of one logical call share."""
    cause: list[bool]
    """The span failed, and the failure did not merely travel up from a span below it."""
    cut: list[bool]
    """The reference to the parent closed a cycle and was cut."""


@dataclass(slots=True, eq=False, repr=False)
class _Group:
    """A logical model or tool call while it is being put together."""

    number: int
    identity: _Identity | None
    scopes: set[str]
    start_ns: int = 0
    last_ns: int = 0
    """When the first span of a tool call ran."""


class _Ledger:
    """Decides which llm spans, and which tool spans, are one call (spec: span-model.md §4).

    Args:
        several: whether the spans have several scopes; one alone tells of no call a second time.
    """

    def __init__(self, several: bool) -> None:
        self._count = 0
        self._several = several
        self._by_identity: dict[_Identity, list[_Group]] = {}
        self._told: dict[tuple[_Identity, str], int] = {}
        """How many calls of an identity, the first ones, a scope is known to have told of."""

    def new(self, identity: _Identity | None, scope: str, start_ns: int = 0, last_ns: int = 0) -> _Group:
        group = _Group(self._count, identity, {scope}, start_ns, last_ns)
        self._count += 1
        if identity is not None and self._several:
            self._by_identity.setdefault(identity, []).append(group)
        return group

    def elsewhere(self, identity: _Identity | None, scope: str) -> _Group | None:
        """Return the call of this identity that another scope told of and this one did not yet.

        One instrumentation tells of a call once (nested spans of it are found by nesting). So a model server
        that answers every request with one and the same id is still counted call by call.
        """
        if identity is None or not self._several:
            return None
        groups, place = self._by_identity.get(identity, ()), self._told.get((identity, scope), 0)
        while place < len(groups) and scope in groups[place].scopes:
            place += 1
        self._told[identity, scope] = place
        return groups[place] if place < len(groups) else None

    def identify(self, group: _Group, identity: str) -> None:
        group.identity = identity
        self._by_identity.setdefault(identity, []).append(group)


def _model_call(ledger: _Ledger, scope: str, identity: str | None, above: _Group | None) -> _Group:
    """Return the group of an llm span; `above` is the group of its nearest call-like ancestor if that is an llm span."""
    if above is not None:
        if identity is None or above.identity == identity:
            above.scopes.add(scope)
            return above
        if above.identity is None:
            other = ledger.elsewhere(identity, scope)
            if other is None:
                ledger.identify(above, identity)
                above.scopes.add(scope)
                return above
    found = ledger.elsewhere(identity, scope)
    if found is not None:
        found.scopes.add(scope)
        return found
    return ledger.new(identity, scope)


class _Context(NamedTuple):
    """What a span hands down to its children."""

    agent: int | None
    tool: int | None
    model_call: _Group | None
    """Group of the nearest ancestor among llm, tool and agent spans, if that is an llm span."""
    tools: int | None
    """The outermost tool span above, below the nearest agent."""


_TOP = _Context(None, None, None, None)


class _ToolsAbove:
    """The tool spans that were entered and not left. Those below one agent are known by the outermost of them (`top`)."""

    def __init__(self) -> None:
        self._named: dict[tuple[int, str], dict[str | None, list[tuple[int, _Group]]]] = {}
        """By name, then by the scope that wrote an id (None: there is no id), with their depths."""
        self._ids: dict[tuple[int, str], list[tuple[int, _Group]]] = {}
        self._tops: dict[int, int] = {}
        """By the spans that were entered."""

    def enter(self, index: int, top: int, span: Span, depth: int, group: _Group) -> None:
        """Take note of a span below which others are."""
        self._tops[index] = top
        for entries in self._places(top, span):
            entries.append((depth, group))

    def leave(self, index: int, span: Span) -> None:
        """Forget a span, where it was entered: it is the last one."""
        top = self._tops.pop(index, None)
        for entries in self._places(top, span) if top is not None else ():
            entries.pop()

    def nearest(self, top: int, span: Span) -> _Group | None:
        """Return the call of the nearest span above that has the name or the id of `span`.

        Two ids that one instrumentation writes are two calls: a tool that was called again while it ran, by a model of its
        own.
        """
        scope, name, call_id = span.scope, span.tool_name, span.tool_call_id
        found: list[tuple[int, _Group]] = []
        if name is not None:
            by_scope = self._named.get((top, name), {})
            found = [of[-1] for told_by, of in by_scope.items() if of and (call_id is None or told_by != scope)]
        if call_id is not None:
            found += self._ids.get((top, call_id), ())[-1:]
        return max(found, key=itemgetter(0))[1] if found else None

    def _places(self, top: int, span: Span) -> Iterator[list[tuple[int, _Group]]]:
        if span.tool_name is not None:
            scope = None if span.tool_call_id is None else span.scope
            yield self._named.setdefault((top, span.tool_name), {}).setdefault(scope, [])
        if span.tool_call_id is not None:
            yield self._ids.setdefault((top, span.tool_call_id), [])


def _tool_call(ledger: _Ledger, span: Span, called: _Group | None) -> _Group:
    """Return the group of a tool span: that of the one above it, else the same call by id and name as another scope tells it."""
    scope, name, call_id = span.scope, span.tool_name, span.tool_call_id
    if called is not None:
        called.scopes.add(scope)
        return called
    identity = None if name is None or call_id is None else (call_id, name)
    told = ledger.elsewhere(identity, scope)
    if told is not None and told.start_ns <= span.last_ns and span.start_ns <= told.last_ns:
        told.scopes.add(scope)
        return told
    return ledger.new(identity, scope, span.start_ns, span.last_ns)


def _same_words(one: str | None, other: str | None) -> bool:
    return bool(one and other and (one in other or other in one))


class _Failures:
    """Tells the causes of failure from spans that only pass a failure on to their parents."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._below: dict[int, list[int]] = {}
        """Nearest failed spans below a span."""
        self._last_start: dict[int, int] = {}
        """Latest start below a span, itself included."""
        self.any = any(span.failed for span in spans)

    def leave(self, index: int, parent: int | None) -> bool:
        """Take note of a span whose children have all been left; return whether it is a cause."""
        span = self._spans[index]
        below = self._below.pop(index, [])
        last = max(self._last_start.pop(index, span.start_ns), span.start_ns)
        own = span.failed and span.kind != "infra"
        cause = own and not any(self._passed_on(entry, span.message, last) for entry in below)
        if parent is not None:
            frontier = [index] if own else below
            if frontier:
                beside = self._below.get(parent, [])
                few, many = sorted((frontier, beside), key=len)  # a long list goes up many levels as it is
                many += few
                self._below[parent] = many
            self._last_start[parent] = max(self._last_start.get(parent, last), last)
        return cause

    def _passed_on(self, index: int, message: str | None, last_start: int) -> bool:
        span = self._spans[index]
        return _same_words(span.message, message) or last_start <= span.last_ns


def walk(spans: Sequence[Span], parents: Sequence[int | None]) -> Walked:
    """Walk the `spans` of one run, whose parents have these indices (None: not received), and return the columns."""
    count = len(spans)
    result = Walked(
        [0] * count, [0] * count, [0] * count, list(range(count)), [None] * count, [None] * count,
        [None] * count, [False] * count, [False] * count,
    )  # fmt: skip
    children: dict[int, list[int]] = {}
    tops: list[int] = []
    later = False
    for index, parent in enumerate(parents):
        if parent is None or parent == index:
            result.cut[index] = parent == index
            tops.append(index)
        elif parent in children:
            children[parent].append(index)
        else:
            children[parent] = [index]
            later = later or parent > index
    if later:  # a cycle has a parent that comes after its child, and children of one parent come in order
        tops = _with_cycles_cut(parents, children, tops, result)
    walker = _Walker(spans, children, result)
    for top in tops:
        walker.visit(top)
    return result


def _with_cycles_cut(
    parents: Sequence[int | None], children: dict[int, list[int]], tops: list[int], result: Walked
) -> list[int]:
    """Return every top in order, after cutting each cycle at its earliest span."""
    reached = bytearray(len(parents))
    _mark(tops, children, reached)
    if all(reached):
        return tops
    extra = []
    for index in range(len(parents)):
        if reached[index]:
            continue
        on_path: set[int] = set()
        node = index
        while node not in on_path:
            on_path.add(node)
            node = _parent(parents, node)
        cycle = [node]
        parent = _parent(parents, node)
        while parent != node:
            cycle.append(parent)
            parent = _parent(parents, parent)
        first = min(cycle)
        children[_parent(parents, first)].remove(first)
        result.cut[first] = True
        extra.append(first)
        _mark([first], children, reached)
    return sorted([*tops, *extra])


def _parent(parents: Sequence[int | None], index: int) -> int:
    parent = parents[index]
    assert parent is not None  # a span without a parent is a top and was reached
    return parent


def _mark(tops: list[int], children: dict[int, list[int]], reached: bytearray) -> None:
    stack = list(tops)
    while stack:
        index = stack.pop()
        reached[index] = 1
        stack.extend(children.get(index, ()))


class _Walker:
    """Depth-first visit of one top after the other."""

    def __init__(self, spans: Sequence[Span], children: dict[int, list[int]], result: Walked) -> None:
        self._spans = spans
        self._children = children
        self._result = result
        self._ledger = _Ledger(len({span.scope for span in spans}) > 1)
        self._failures = _Failures(spans)
        self._tools = _ToolsAbove()
        self._position = 0
        self._named: dict[tuple[str, int | None, str], int] = {}
        """Latest activation of a name: below one parent, and (None) anywhere in the trace."""
        self._around: dict[int | None, _Context] = {}
        """What holds below a parent apart from the steps of agents that stand there."""

    def visit(self, top: int) -> None:
        """Visit the tree below `top`."""
        enter, leave, depth, root, agent, tool, _, cause, _ = self._result
        spans, children, failures, position = self._spans, self._children, self._failures, self._position
        failing, level = failures.any, 0
        above: list[tuple[Iterator[int], int | None, _Context]] = []
        """Of each span that was entered and not left: its children to come, itself, and what it hands down."""
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
        """Return what a span hands down; for a leaf it is not made."""
        kind = span.kind
        if span.owner_agent is not None and kind != "agent":
            context = self._owned(index, span, context)
        if kind == "llm":
            group = _model_call(self._ledger, span.scope, span.response_id, context.model_call)
            self._result.group[index] = group.number
            return context if leaf else _Context(context.agent, context.tool, group, context.tools)
        if kind == "tool":
            group = self._called(span, context)
            self._result.group[index] = group.number
            if leaf:
                return context
            if span.emits == "agent":
                return _Context(index, None, None, None)
            top = index if context.tools is None else context.tools
            self._tools.enter(index, top, span, self._result.depth[index], group)
            return _Context(context.agent, index, None, top)
        if kind != "agent":
            return context
        if span.agent_name is not None:
            self._named[span.trace_id, None, span.agent_name] = index
            self._named[span.trace_id, span.parent_sid, span.agent_name] = index
        if span.emits == "tool":
            self._result.group[index] = self._called(span, context).number
        return _Context(index, None, None, None) if span.role != "step" else self._step(index, span, context)

    def _step(self, index: int, span: Span, context: _Context) -> _Context:
        """Return the context of the agent of which the span is a step: also what follows below the same parent is its work."""
        around = self._around.setdefault(span.parent_sid, context)
        before = context.agent if context is not around else None
        if before is not None and self._spans[before].agent_name == span.agent_name is not None:
            return context
        self._result.agent[index], self._result.tool[index] = around.agent, around.tool
        return _Context(index, None, None, None)

    def _called(self, span: Span, context: _Context) -> _Group:
        above = None if context.tools is None else self._tools.nearest(context.tools, span)
        return _tool_call(self._ledger, span, above)

    def _owned(self, index: int, span: Span, context: _Context) -> _Context:
        """Return the context of the agent that the span says it works for, where that is not the one it is nested in.

        Some instrumentations write an activation beside its work: the one below the same parent goes before others.
        """
        owner = span.owner_agent
        if owner is None or (context.agent is not None and self._spans[context.agent].agent_name == owner):
            return context
        found = self._named.get((span.trace_id, span.parent_sid, owner), self._named.get((span.trace_id, None, owner)))
        if found is None:
            return context
        self._result.agent[index], self._result.tool[index] = found, None
        return _Context(found, None, None, None)

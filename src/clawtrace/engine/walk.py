"""One linear pass over the spans of many runs: the tree, and which spans are one logical call.

SQL has no portable recursion and no union-find; this pass computes exactly what needs either, as columns,
and leaves the rest to SQL. It is iterative: 5 000 nested spans are ordinary.

Spans come numbered by ``sid`` (0, 1, 2 …) in the order run, start, end, span id; so siblings are visited in
order of start, and every result depends on the spans alone, never on the order of their arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SpanRow", "Walked", "walk"]

SpanRow = tuple[int | None, int, str, str, int, int | None, bool, str | None, str | None, str | None, str | None]
"""parent_sid, run_no, kind, scope, start_ns, end_ns, failed, error message, response_id, tool_name, tool_call_id."""

_CALL_KINDS = frozenset(("llm", "tool", "agent"))


@dataclass(slots=True)
class Walked:
    """One entry a span, in order of ``sid``."""

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


@dataclass(slots=True)
class _Group:
    """A logical model or tool call while it is being put together."""

    number: int
    identity: str | None
    scopes: set[str] = field(default_factory=set)


class _Ledger:
    """Decides which llm spans, and which tool spans, are one call (spec: span-model.md §4)."""

    def __init__(self) -> None:
        self._count = 0
        self._by_identity: dict[tuple[int, str, str], list[_Group]] = {}

    def new(self, run: int, kind: str, identity: str | None, scope: str) -> _Group:
        group = _Group(self._count, identity, {scope})
        self._count += 1
        if identity is not None:
            self._by_identity.setdefault((run, kind, identity), []).append(group)
        return group

    def elsewhere(self, run: int, kind: str, identity: str | None, scope: str) -> _Group | None:
        """Return the call of this identity that another scope told of and this one did not yet.

        One instrumentation tells of a call once (nested spans of it are found by nesting). So a model server
        that answers every request with one and the same id is still counted call by call.
        """
        if identity is None:
            return None
        for group in self._by_identity.get((run, kind, identity), ()):
            if scope not in group.scopes:
                return group
        return None

    def identify(self, group: _Group, run: int, kind: str, identity: str) -> None:
        group.identity = identity
        self._by_identity.setdefault((run, kind, identity), []).append(group)


def _model_call(ledger: _Ledger, run: int, scope: str, identity: str | None, above: _Group | None) -> _Group:
    """Return the group of an llm span; `above` is the group of its nearest call-like ancestor if that is an llm span."""
    if above is not None:
        if identity is None or above.identity == identity:
            above.scopes.add(scope)
            return above
        if above.identity is None:
            other = ledger.elsewhere(run, "llm", identity, scope)
            if other is None:
                ledger.identify(above, run, "llm", identity)
                above.scopes.add(scope)
                return above
    found = ledger.elsewhere(run, "llm", identity, scope)
    if found is not None:
        found.scopes.add(scope)
        return found
    return ledger.new(run, "llm", identity, scope)


@dataclass(slots=True)
class _Context:
    """What a span hands down to its children."""

    agent: int | None
    tool: int | None
    model_call: _Group | None
    """Group of the nearest ancestor among llm, tool and agent spans, if that is an llm span."""
    tools: tuple[Any, ...] | None
    """Linked list (name, call id, group, rest) of the tool spans above, up to the nearest agent."""


_TOP = _Context(None, None, None, None)


def _tool_call(
    ledger: _Ledger, run: int, scope: str, name: str | None, call_id: str | None, above: tuple[Any, ...] | None
) -> _Group:
    node = above
    while node is not None:
        if (name is not None and node[0] == name) or (call_id is not None and node[1] == call_id):
            group: _Group = node[2]
            group.scopes.add(scope)
            return group
        node = node[3]
    return ledger.new(run, "tool", None, scope)


def _same_words(one: str | None, other: str | None) -> bool:
    return bool(one and other and (one in other or other in one))


class _Failures:
    """Tells the causes of failure from spans that only pass a failure on to their parents."""

    def __init__(self, rows: Sequence[SpanRow]) -> None:
        self._rows = rows
        self._below: dict[int, list[int]] = {}
        """Nearest failed spans below a span."""
        self._last_start: dict[int, int] = {}
        """Latest start below a span, itself included."""

    def leave(self, sid: int, parent: int | None) -> bool:
        """Take note of a span whose children have all been left; return whether it is a cause."""
        _, _, kind, _, start, _, failed, message, _, _, _ = self._rows[sid]
        below = self._below.pop(sid, [])
        last = max(self._last_start.pop(sid, start), start)
        own = failed and kind != "infra"
        cause = own and not any(self._passed_on(entry, message, last) for entry in below)
        if parent is not None:
            frontier = [sid] if own else below
            if frontier:
                self._below.setdefault(parent, []).extend(frontier)
            self._last_start[parent] = max(self._last_start.get(parent, last), last)
        return cause

    def _passed_on(self, sid: int, message: str | None, last_start: int) -> bool:
        _, _, _, _, start, end, _, below_message, _, _, _ = self._rows[sid]
        return _same_words(below_message, message) or last_start <= max(start, end or start)


def walk(rows: Sequence[SpanRow]) -> Walked:
    """Walk `rows` (indexed by sid; runs one after the other) and return the columns."""
    count = len(rows)
    result = Walked(
        [0] * count, [0] * count, [0] * count, list(range(count)), [None] * count, [None] * count,
        [None] * count, [False] * count, [False] * count,
    )  # fmt: skip
    children: dict[int, list[int]] = {}
    tops: list[int] = []
    for sid, row in enumerate(rows):
        parent = row[0]
        if parent is None or parent == sid:
            result.cut[sid] = parent == sid
            tops.append(sid)
        else:
            children.setdefault(parent, []).append(sid)
    walker = _Walker(rows, children, result)
    reached = bytearray(count)
    pending = _with_cycles_cut(rows, children, tops, reached, result)
    for top in pending:
        walker.visit(top)
    return result


def _with_cycles_cut(
    rows: Sequence[SpanRow], children: dict[int, list[int]], tops: list[int], reached: bytearray, result: Walked
) -> list[int]:
    """Return every top in order, after cutting each cycle at its earliest span."""
    _mark(tops, children, reached)
    if all(reached):
        return tops
    extra = []
    for sid in range(len(rows)):
        if reached[sid]:
            continue
        on_path: set[int] = set()
        node = sid
        while node not in on_path:
            on_path.add(node)
            parent = rows[node][0]
            assert parent is not None  # a span without a parent is a top and was reached
            node = parent
        cycle = [node]
        parent = rows[node][0]
        while parent != node:
            assert parent is not None
            cycle.append(parent)
            parent = rows[parent][0]
        first = min(cycle)
        parent = rows[first][0]
        assert parent is not None
        children[parent].remove(first)
        result.cut[first] = True
        extra.append(first)
        _mark([first], children, reached)
    return sorted([*tops, *extra])


def _mark(tops: list[int], children: dict[int, list[int]], reached: bytearray) -> None:
    stack = list(tops)
    while stack:
        sid = stack.pop()
        reached[sid] = 1
        stack.extend(children.get(sid, ()))


class _Walker:
    """Depth-first visit of one top after the other."""

    def __init__(self, rows: Sequence[SpanRow], children: dict[int, list[int]], result: Walked) -> None:
        self._rows = rows
        self._children = children
        self._result = result
        self._ledger = _Ledger()
        self._failures = _Failures(rows)
        self._run = -1
        self._position = 0

    def visit(self, top: int) -> None:
        """Visit the tree below `top`; positions start again with each run."""
        run = self._rows[top][1]
        if run != self._run:
            self._run, self._position = run, 0
        result, children = self._result, self._children
        stack: list[tuple[int, int | None, _Context | None]] = [(top, None, _TOP)]
        while stack:
            sid, parent, context = stack.pop()
            self._position += 1
            if context is None:
                result.leave[sid] = self._position
                result.cause[sid] = self._failures.leave(sid, parent)
                continue
            result.enter[sid] = self._position
            result.root[sid] = top
            result.depth[sid] = 0 if parent is None else result.depth[parent] + 1
            result.agent[sid], result.tool[sid] = context.agent, context.tool
            stack.append((sid, parent, None))
            below = children.get(sid)
            inner = self._enter(sid, context)
            if below:
                stack.extend((child, sid, inner) for child in reversed(below))

    def _enter(self, sid: int, context: _Context) -> _Context:
        _, run, kind, scope, _, _, _, _, response_id, tool_name, tool_call_id = self._rows[sid]
        if kind not in _CALL_KINDS:
            return context
        if kind == "agent":
            return _Context(sid, None, None, None)
        if kind == "llm":
            group = _model_call(self._ledger, run, scope, response_id, context.model_call)
            self._result.group[sid] = group.number
            return _Context(context.agent, context.tool, group, context.tools)
        group = _tool_call(self._ledger, run, scope, tool_name, tool_call_id, context.tools)
        self._result.group[sid] = group.number
        return _Context(context.agent, sid, None, (tool_name, tool_call_id, group, context.tools))

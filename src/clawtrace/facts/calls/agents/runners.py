"""Agent spans that are no agents: the function that runs one, and the graph that holds several together.

Frameworks and instrumentations write a span of kind agent around a whole run, too: `AgentRunner.run`, or a graph with agents
as its nodes. It is none where it does no work itself: each model and tool call inside of it is one of an agent inside of
it. Such a span becomes a step, so that the agents inside of it work for whom it works for. What may be one is called after
its code or not at all, or is called like the one agent inside of it, or its dialect says so (the role `runner`); a span that has
a different name is an agent. An agent that works and is called after its code has no name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Sequence, Set

from clawtrace.facts.spans.span import Span

__all__ = ["without_inferred", "without_runners"]

_CODE = re.compile(r"[A-Z]\w*\.[a-z_]\w*|(\w+\.)+(a?(run|invoke|call)(_\w+)?|__call__)")
"""A method of a class or a path to code: the name of a span for which an instrumentation knows no other."""


def without_inferred(spans: Sequence[Span], parents: Sequence[int | None]) -> Sequence[Span]:
    """Return the spans of one run, those of the role `inferred` as steps where work of another scope is inside, or they are in its tool call and no model's."""
    inferred = [index for index, span in enumerate(spans) if span.role == "inferred"]
    if not inferred:
        return spans
    around: dict[str, set[int]] = defaultdict(set)
    tools: set[int] = set()
    for index, span in enumerate(spans):
        if span.role != "inferred" and span.kind in ("agent", "llm", "tool"):
            tools |= {index} if span.kind == "tool" else set()
            around[span.scope] |= _path(parents, index, around[span.scope])
    found = list(spans)
    for index in inferred:
        span = spans[index]
        above = _path(parents, index, ()) if tools else set()
        inside = any(index in places for scope, places in around.items() if scope != span.scope)
        if inside or (span.kind != "llm" and any(spans[at].scope != span.scope for at in above & tools)):
            found[index] = span._replace(
                kind="other", role=None, agent_name=None, tool_name=None, input_tokens=None, output_tokens=None
            )
        else:
            found[index] = span._replace(role=None)
    return found


def _path(parents: Sequence[int | None], index: int, known: Container[int]) -> set[int]:
    """Return the spans around a span, up to the first one in `known`."""
    found: set[int] = set()
    at = parents[index]
    while at is not None and at not in known and at not in found:
        found.add(at)
        at = parents[at]
    return found


def without_runners(spans: Sequence[Span], parents: Sequence[int | None]) -> tuple[Sequence[Span], Set[int]]:
    """Return the spans of one run, agents without their code's name, and those that only run agents as steps; and which these are.

    Args:
        spans: in order of start.
        parents: the index of each span's parent.
    """
    graphs = {parents[index] for index, span in enumerate(spans) if span.emits == "node"}
    found = list(spans)
    for index, span in enumerate(spans):
        if index in graphs and span.kind == "chain":
            found[index] = span._replace(kind="agent", role=span.role or "runner", emits=None)
        elif span.emits == "node":
            found[index] = span._replace(emits=None)
    agents = [index for index, span in enumerate(found) if span.kind == "agent" and span.emits is None]
    names = {found[index].agent_name for index in agents}
    if len(names) == len(agents) and not any(_may_run(found[index]) for index in agents):
        return found if graphs else spans, frozenset()
    return _Runners(found, parents, agents).gone()


def _may_run(span: Span) -> bool:
    return span.role == "runner" or (span.role is None and (span.agent_name is None or _is_code(span)))


def _is_code(span: Span) -> bool:
    return span.agent_name == span.name and _CODE.fullmatch(span.name) is not None


class _Runners:
    """The work of each agent span of a run, and of the agents directly inside it."""

    def __init__(self, spans: list[Span], parents: Sequence[int | None], agents: Sequence[int]) -> None:
        self._spans = spans
        self._agents = agents
        self._above = _above(spans, parents)
        self._inner: dict[int, list[int]] = defaultdict(list)
        self._works: set[int] = set()
        """Agents that make model or tool calls themselves, in any number of steps."""
        for index, span in enumerate(spans):
            above = self._above[index]
            if above is not None and _is_agent(span):
                self._inner[above].append(index)
        for index, span in enumerate(spans):
            if span.kind in ("llm", "tool") and not _is_agent(span):
                self._works |= self._workers(self._above[index], span.owner_agent)
        self._busy: set[int] = set()
        """Agents that work or contain one that does."""
        for index in self._works:
            at: int | None = index
            while at is not None and at not in self._busy:
                self._busy.add(at)
                at = self._above[at]

    def _workers(self, above: int | None, owner: str | None) -> Set[int]:
        """Return the agents whose work a call is: the one around it, or those directly inside that one that the call names."""
        if above is None:
            return frozenset()
        if owner is None or owner == self._spans[above].agent_name:
            return {above}
        return {inner for inner in self._inner[above] if self._spans[inner].agent_name == owner} or {above}

    def gone(self) -> tuple[list[Span], Set[int]]:
        """Return the spans without those that only run agents, and the latter."""
        spans = self._spans
        gone = {index for index in self._agents if self._runs_others(index)}
        for index in self._agents:
            span = spans[index]
            if index in gone:
                spans[index] = span._replace(kind="chain", role="wrapper")
            elif span.role == "runner":
                spans[index] = span._replace(role=None)
            elif span.role is None and _is_code(span):
                spans[index] = span._replace(agent_name=None)
        return spans, gone

    def _runs_others(self, index: int) -> bool:
        span = self._spans[index]
        if index in self._works:
            return False
        inner = self._inner[index]
        busy = [other for other in inner if other in self._busy]
        if _may_run(span):
            nested_step = span.role == "runner" and self._above[index] is not None
            return bool(busy) or nested_step or (not inner and self._has_busy_sibling(index))
        return span.role is None and bool(busy) and all(self._same(span, self._spans[other]) for other in inner)

    def _same(self, outer: Span, inner: Span) -> bool:
        """Return whether two nested agent spans of one instrumentation have the same name."""
        return inner.scope == outer.scope and inner.role is None and inner.agent_name == outer.agent_name is not None

    def _has_busy_sibling(self, index: int) -> bool:
        """Return whether an agent of the same caller worked during an empty span."""
        span = self._spans[index]
        return any(
            other != index
            and self._above[other] == self._above[index]
            and self._spans[other].trace_id == span.trace_id
            and span.start_ns <= self._spans[other].start_ns <= span.last_ns
            for other in self._busy
        )


def _is_agent(span: Span) -> bool:
    return span.kind == "agent" or span.emits == "agent"


def _above(spans: Sequence[Span], parents: Sequence[int | None]) -> list[int | None]:
    """Return the nearest agent around each span; None in a cycle."""
    found: list[int | None] = [None] * len(spans)
    known = bytearray(len(spans))
    for index in range(len(spans)):
        path = []
        at: int | None = index
        while at is not None and not known[at]:
            known[at] = 1
            path.append(at)
            at = parents[at]
        for below in reversed(path):
            parent = parents[below]
            if parent is not None:
                found[below] = parent if _is_agent(spans[parent]) else found[parent]
    return found

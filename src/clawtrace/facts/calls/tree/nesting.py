"""Calls that the tree shows: spans inside of each other, and spans that carry one id, of a model call or of a tool call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.calls.rules import (
    NAMELESS_TOOL_SPAN,
    NESTED_MODEL_SPAN,
    NESTED_TOOL_SPAN,
    SAME_RESPONSE_ID,
    SAME_TOOL_CALL_ID,
    SEVERAL_ANSWERS,
    CallRule,
)
from clawtrace.facts.spans.span import REMOTE_PARENT, Span

__all__ = ["NestedCall", "NestedCalls", "ToolsAbove"]

_Identity = str | tuple[str, str]
"""What several spans of one call share: the id of a model's response, or the id and the name of a tool call."""


@dataclass(slots=True, eq=False, repr=False)
class NestedCall:
    """A model or tool call as the spans that were visited so far show it."""

    number: int
    """In the ledger."""
    identity: _Identity | None
    scopes: set[str]
    start_ns: int = 0
    last_ns: int = 0
    """When its first span ran."""
    levels: dict[tuple[str, int], bool] = field(default_factory=dict)
    """The scopes and depths of its model spans, and whether one there was answered."""
    asked: bool = False
    """Whether a tool ran inside of it since its last model span began."""
    latest: NestedCall | None = None
    """The last of several calls whose spans are inside of its first one."""

    def takes(self, span: Span, depth: int) -> bool:
        """Return whether a model span inside of it may be a layer or an attempt of it.

        It is another call where one at its level had been answered and it is, too, or where a tool ran between them: the
        first one's answer asked for that.
        """
        answered = self.levels.get((span.scope, depth))
        return answered is None or not (self.asked or (answered and span.answered))


class NestedCalls:
    """Finds the call of each model and tool span while the tree is walked.

    Args:
        spans: of the run.
        ledger: what is found goes there.
        layers: the tool spans that a separate rule put below a tool span, by `Span.sid`.
    """

    def __init__(self, spans: Sequence[Span], ledger: Ledger, layers: Mapping[int, CallRule]) -> None:
        self._ledger = ledger
        self._layers = layers
        self._several = len({span.scope for span in spans}) > 1
        """One scope alone records no call a second time."""
        self._by_identity: dict[_Identity, list[NestedCall]] = {}
        self._recorded: dict[tuple[_Identity, str], int] = {}
        """How many calls of an identity, the first ones, a scope is known to have recorded."""

    def model_call(self, index: int, span: Span, above: NestedCall | None, depth: int) -> NestedCall:
        """Return the call of a model span; `above` is that of its nearest ancestor among models, tools and agents, if a model's."""
        call = self._model_call(index, span, above, depth)
        call.levels[span.scope, depth] = call.levels.get((span.scope, depth), False) or span.answered
        call.asked = False
        return call

    def _model_call(self, index: int, span: Span, outer: NestedCall | None, depth: int) -> NestedCall:
        identity, scope = span.response_id, span.scope
        found = self._elsewhere(identity, scope)
        above = outer and (outer.latest or outer)
        if outer is not None and above is not None and not _followed(span, above):
            if identity is None and not above.takes(span, depth):
                outer.latest = self._open(index, span, None)
                self._ledger.rule[index] = SEVERAL_ANSWERS
                return outer.latest
            if identity is None or above.identity == identity:
                return self._join(index, above, scope, NESTED_MODEL_SPAN)
            if above.identity is None and found is None:
                self._identify(above, identity)
                return self._join(index, above, scope, NESTED_MODEL_SPAN)
        return self._open(index, span, identity) if found is None else self._join(index, found, scope, SAME_RESPONSE_ID)

    def tool_call(self, index: int, span: Span, above: NestedCall | None) -> NestedCall:
        """Return the call of a tool span: that of the one above it, else the one that another scope recorded under its id and name."""
        scope, name, call_id = span.scope, span.tool_name, span.tool_call_id
        if above is not None:
            rule = NESTED_TOOL_SPAN if span.tells_its_tool else NAMELESS_TOOL_SPAN
            return self._join(index, above, scope, self._layers.get(span.sid, rule))
        identity = None if name is None or call_id is None else (call_id, name)
        found = self._elsewhere(identity, scope)
        if found is not None and found.start_ns <= span.last_ns and span.start_ns <= found.last_ns:
            return self._join(index, found, scope, SAME_TOOL_CALL_ID)
        return self._open(index, span, identity)

    def _open(self, index: int, span: Span, identity: _Identity | None) -> NestedCall:
        call = NestedCall(self._ledger.open(index), None, {span.scope}, span.start_ns, span.last_ns)
        if identity is not None:
            self._identify(call, identity)
        return call

    def _join(self, index: int, call: NestedCall, scope: str, rule: CallRule) -> NestedCall:
        self._ledger.join(index, call.number, rule)
        call.scopes.add(scope)
        return call

    def _identify(self, call: NestedCall, identity: _Identity) -> None:
        call.identity = identity
        if self._several:
            self._by_identity.setdefault(identity, []).append(call)

    def _elsewhere(self, identity: _Identity | None, scope: str) -> NestedCall | None:
        """Return the call of this identity that another scope recorded and this one did not yet.

        One instrumentation records a call once (its nested spans are found by nesting). So a model server
        that answers every request with one and the same id is still counted call by call.
        """
        if identity is None or not self._several:
            return None
        calls, place = self._by_identity.get(identity, ()), self._recorded.get((identity, scope), 0)
        while place < len(calls) and scope in calls[place].scopes:
            place += 1
        self._recorded[identity, scope] = place
        return calls[place] if place < len(calls) else None


class ToolsAbove:
    """The tool spans that were entered and not left. Those below one agent are known by the outermost of them (`top`)."""

    def __init__(self) -> None:
        self._named: dict[tuple[int, str], dict[str | None, list[tuple[int, NestedCall]]]] = {}
        """By name, then by the scope that wrote an id (None: there is no id), with their depths."""
        self._ids: dict[tuple[int, str], list[tuple[int, NestedCall]]] = {}
        self._tops: dict[int, int] = {}
        """By the spans that were entered."""
        self._around: dict[int, list[NestedCall]] = {}
        """The calls of all spans below one outermost, itself first."""

    def enter(self, index: int, top: int, span: Span, depth: int, group: NestedCall) -> None:
        """Take note of a span below which others are."""
        self._tops[index] = top
        self._around.setdefault(top, []).append(group)
        for entries in self._places(top, span):
            entries.append((depth, group))

    def leave(self, index: int, span: Span) -> None:
        """Forget a span, where it was entered: it is the last one."""
        top = self._tops.pop(index, None)
        if top is not None:
            self._around[top].pop()
        for entries in self._places(top, span) if top is not None else ():
            entries.pop()

    def nearest(self, top: int, span: Span) -> NestedCall | None:
        """Return the call of the nearest span above that has the name or the id of `span`, or of any where it has neither.

        Two ids that one instrumentation writes are two calls: a tool that was called again while it ran, by a model of its
        own.
        """
        scope, name, call_id = span.scope, span.tool_name, span.tool_call_id
        if not span.tells_its_tool:
            return self._around[top][-1]
        found: list[tuple[int, NestedCall]] = []
        if name is not None:
            by_scope = self._named.get((top, name), {})
            found = [of[-1] for recorded_by, of in by_scope.items() if of and (call_id is None or recorded_by != scope)]
        if call_id is not None:
            found += self._ids.get((top, call_id), ())[-1:]
        return max(found, key=itemgetter(0))[1] if found else None

    def _places(self, top: int, span: Span) -> Iterator[list[tuple[int, NestedCall]]]:
        if span.tool_name is not None:
            scope = None if span.tool_call_id is None else span.scope
            yield self._named.setdefault((top, span.tool_name), {}).setdefault(scope, [])
        if span.tool_call_id is not None:
            yield self._ids.setdefault((top, span.tool_call_id), [])


def _followed(span: Span, above: NestedCall) -> bool:
    """Return whether a model span is what followed from the call above it, which had ended, and no layer of it.

    One scope of one process writes both. A layer of another scope may begin later, as a stream that is asked for when it is first
    read, and another process has another clock.
    """
    remote = (span.flags or 0) & REMOTE_PARENT == REMOTE_PARENT
    return span.start_ns > above.last_ns and span.scope in above.scopes and not remote

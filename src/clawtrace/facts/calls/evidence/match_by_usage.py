"""Two instrumentations of one program that hang side by side, where one of them does not write the provider's response id.

A framework's callbacks write spans that are no parents of the SDK's, and two instrumentations of one framework get the same
callbacks some milliseconds apart, in any order. Their spans are one model call where both record the same of it, in
overlapping time (spec: span-model.md §4): the ids of the requested tool calls, or the tokens and the answer.
No tolerance of clocks decides.

Where both scopes share calls, or all that one scope recorded was found in the other, equal tokens or an equal answer
suffices. What may be one call or two is joined while tools and agents are, and then made two again, one of which may be the other
(`RunSpans.doubtful`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from operator import attrgetter

from clawtrace.dialects.call_ids import id_kind
from clawtrace.dialects.message_parts import Part
from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.calls.rules import (
    FAILED_TOGETHER,
    SAME_ANSWER,
    SAME_ANSWER_AND_USAGE,
    SAME_REQUESTED_TOOL_CALLS,
    SAME_TIME,
    SAME_USAGE,
    CallRule,
)
from clawtrace.facts.spans.span import Span
from clawtrace.model.model_names import bare_model_name

__all__ = ["join_by_content"]

_CANDIDATES = 32
"""Calls before and after another one, by their start, that are compared with it: more at once are not distinguished."""

_Messages = Mapping[tuple[int, str], Sequence[Part]]


@dataclass(slots=True, eq=False)
class _ScopedCall:
    """What one scope recorded of one model call."""

    group: int
    start_ns: int
    last_ns: int = 0
    failed: bool = True
    named: bool = False
    """It has the provider's response id."""
    models: set[str] = field(default_factory=set)
    """Bare names: one instrumentation writes `openai/gpt-4o`, another `gpt-4o`."""
    tokens: tuple[int | None, int | None] = (None, None)
    asked: frozenset[str] = frozenset()
    """Ids of the tool calls that the model requested."""
    id_kinds: frozenset[str] = frozenset()
    answer: str = ""

    @property
    def silent(self) -> bool:
        """No usage is recorded: no request is empty, so zero means that the instrumentation did not get the usage."""
        return not self.failed and not any(self.tokens)

    def add(self, span: Span, said: Sequence[Part]) -> None:
        """Add one more span of the call."""
        self.start_ns, self.last_ns = min(self.start_ns, span.start_ns), max(self.last_ns, span.last_ns)
        self.failed = self.failed and span.failed
        self.named = self.named or span.response_id is not None
        self.models |= {bare_model_name(name) for name in (span.request_model, span.response_model) if name is not None}
        if not any(self.tokens):
            self.tokens = (span.input_tokens, span.output_tokens)
        asked = {part.call_id for part in said if part.type == "tool_call" and part.call_id is not None}
        self.asked |= asked
        self.id_kinds |= set(map(id_kind, asked))
        self.answer = self.answer or "".join((part.text or "").strip() for part in said if part.type == "text")


def join_by_content(spans: Sequence[Span], ledger: Ledger, messages: _Messages) -> list[list[int]]:
    """Join the model calls that two scopes record; return the spans of those that may be another call, call by call."""
    calls = _Calls(spans, ledger, messages)
    pairs = list(combinations(sorted(calls.of_scope), 2))
    # What is sure goes first: it shows which scopes record the same program.
    for match in (_sure, _alike, _in_part):
        for one, other in pairs:
            calls.join(one, other, match)
    return calls.doubtful


class _Calls:
    """The model calls of a run, by scope, while they are joined."""

    def __init__(self, spans: Sequence[Span], ledger: Ledger, messages: _Messages) -> None:
        self.of_scope: dict[str, dict[int, _ScopedCall]] = defaultdict(dict)
        """Its calls, in order of start, by their numbers."""
        self.doubtful: list[list[int]] = []
        """The spans of calls that were joined with a call that may be another one."""
        self._ledger = ledger
        several = len({span.scope for span in spans if span.kind == "llm"}) > 1
        for span, number in zip(spans, ledger.group, strict=True) if several else ():
            if span.kind == "llm" and number is not None:
                call = self.of_scope[span.scope].setdefault(number, _ScopedCall(number, span.start_ns))
                call.add(span, messages.get((span.sid, "output"), ()))

    def join(self, one: str, other: str, match: _Match) -> None:
        """Join the calls that two scopes record, where they match."""
        mine, theirs = self._left(one, other), self._left(other, one)
        if mine and theirs:
            shared = len(mine) < len(self.of_scope[one]) or len(theirs) < len(self.of_scope[other])
            certain, doubtful = match(_asked_about(mine, theirs), _asked_about(theirs, mine), shared)
            for first, second, rule in certain:
                self._ledger.merge(first.group, second.group, rule)
            for first, second, rule in doubtful:
                number = self._ledger.of(first.group)
                members = [] if number is None else self._ledger.members(number)
                self._ledger.merge(first.group, second.group, rule)
                if self._ledger.of(first.group) == self._ledger.of(second.group) != number:
                    self.doubtful.append(members)

    def _left(self, scope: str, other: str) -> list[_ScopedCall]:
        """Return the calls of a scope that have no certain counterpart in the other scope."""
        found = []
        for number, call in self.of_scope[scope].items():
            now = self._ledger.of(number)
            if now is not None and other not in self._ledger.scopes(now):
                found.append(call)
        return sorted(found, key=attrgetter("start_ns"))


_Pairs = list[tuple[_ScopedCall, _ScopedCall, CallRule]]
_Match = Callable[[Sequence[_ScopedCall], Sequence[_ScopedCall], bool], tuple[_Pairs, _Pairs]]
"""Maps the calls of two scopes, and whether they share other calls, to the pairs that are one call and those that may be."""


def _asked_about(calls: Sequence[_ScopedCall], others: Sequence[_ScopedCall]) -> list[_ScopedCall]:
    """Return the calls whose model the other scope may have recorded: a model that it names, or any if it names none."""
    models = {model for call in others for model in call.models}
    nameless = any(not call.models for call in others)
    return [call for call in calls if nameless or not call.models or call.models & models]


def _sure(mine: Sequence[_ScopedCall], theirs: Sequence[_ScopedCall], shared: bool) -> tuple[_Pairs, _Pairs]:  # noqa: ARG001
    """Pair the calls that requested the same tool calls, by id, and those with the same answer and the same tokens."""
    sure = _pairs(mine, theirs, attrgetter("asked"), _may_be_one, SAME_REQUESTED_TOOL_CALLS)
    return sure + _pairs(*_rest(mine, theirs, sure), _said_and_used, _may_be_one, SAME_ANSWER_AND_USAGE), []


def _alike(mine: Sequence[_ScopedCall], theirs: Sequence[_ScopedCall], shared: bool) -> tuple[_Pairs, _Pairs]:
    """Pair the calls with the same tokens or the same answer, and failures: sure where the scopes record the same program."""
    found = _pairs(mine, theirs, _used, _may_be_one, SAME_USAGE)
    found += _pairs(*_rest(mine, theirs, found), attrgetter("answer"), _no_other_tokens, SAME_ANSWER)
    failures = _pairs(mine, theirs, attrgetter("failed"), _no_other_tokens, FAILED_TOGETHER)
    if not (shared or _all_of_one_side(mine, theirs, found)):
        return [], found
    certain, doubtful = _by_answer(found)
    return certain + failures, doubtful


def _in_part(mine: Sequence[_ScopedCall], theirs: Sequence[_ScopedCall], shared: bool) -> tuple[_Pairs, _Pairs]:
    """Pair the calls of which a scope recorded no usage, by their time, and failures where there are such calls.

    Sure where all of one side are found, of models that both name, and both have as many or recorded some usage. Of scopes that record the same program, calls at one time whose usage alone differs may be one, too.
    """
    answered = [call for call in mine if not call.failed], [call for call in theirs if not call.failed]
    found = _pairs(*answered, _any_key, _without_usage, SAME_TIME)
    as_many = len(answered[0]) == len(answered[1])
    some_usage = not any(all(call.silent for call in side) for side in answered)
    if (as_many or some_usage) and _all_of_one_side(mine, theirs, found):
        named = [pair for pair in found if pair[0].models and pair[1].models]
        certain, doubtful = _by_answer(named)
        doubtful += [pair for pair in found if not (pair[0].models and pair[1].models)]
        failures = _pairs(mine, theirs, attrgetter("failed"), _no_other_tokens, FAILED_TOGETHER) if certain else []
        return certain + failures, doubtful
    return [], found + (_pairs(*_rest(*answered, found), _any_key, _no_other_answer, SAME_TIME) if shared else [])


def _pairs(
    mine: Sequence[_ScopedCall],
    theirs: Sequence[_ScopedCall],
    key: Callable[[_ScopedCall], object],
    alike: Callable[[_ScopedCall, _ScopedCall], bool],
    rule: CallRule,
) -> _Pairs:
    """Return the pairs with the same key (that says anything) at overlapping times, the nearest in time first."""
    by_key: dict[object, list[_ScopedCall]] = defaultdict(list)
    for call in theirs:  # in order of start
        if found := key(call):
            by_key[found].append(call)
    candidates = []
    for place, call in enumerate(mine):
        others = by_key.get(key(call), []) if key(call) else []
        at = bisect_left(others, call.start_ns, key=attrgetter("start_ns"))
        for number, other in enumerate(others[max(at - _CANDIDATES, 0) : at + _CANDIDATES]):
            if _overlap(call, other) and alike(call, other):
                apart = abs(call.start_ns - other.start_ns) + abs(call.last_ns - other.last_ns)
                candidates.append((apart, place, number, call, other))
    candidates.sort(key=lambda one: one[:3])
    taken: set[int] = set()
    pairs = []
    for *_, call, other in candidates:
        if id(call) not in taken and id(other) not in taken:
            taken |= {id(call), id(other)}
            pairs.append((call, other, rule))
    return pairs


def _by_answer(pairs: _Pairs) -> tuple[_Pairs, _Pairs]:
    """Return the pairs whose two sides agree, and the pairs whose sides contradict each other."""
    differ = [_say_otherwise(one, other) for one, other, _ in pairs]
    agreeing = [pair for pair, other in zip(pairs, differ, strict=True) if not other]
    return agreeing, [pair for pair, other in zip(pairs, differ, strict=True) if other]


def _rest(
    mine: Sequence[_ScopedCall], theirs: Sequence[_ScopedCall], pairs: _Pairs
) -> tuple[list[_ScopedCall], list[_ScopedCall]]:
    taken = {id(call) for one, other, _ in pairs for call in (one, other)}
    return [call for call in mine if id(call) not in taken], [call for call in theirs if id(call) not in taken]


def _all_of_one_side(mine: Sequence[_ScopedCall], theirs: Sequence[_ScopedCall], pairs: _Pairs) -> bool:
    """Return whether every answered call of one side is in a pair."""
    return any(all(call.failed for call in side) for side in _rest(mine, theirs, pairs))


def _any_key(call: _ScopedCall) -> bool:  # noqa: ARG001 - compared by time alone
    return True


def _used(call: _ScopedCall) -> tuple[int | None, int | None] | None:
    """Return the tokens of a call where both are recorded."""
    return call.tokens if None not in call.tokens and any(call.tokens) else None


def _said_and_used(call: _ScopedCall) -> tuple[str, object] | None:
    """Return the answer of a call and its tokens, where all are recorded."""
    used = _used(call)
    return (call.answer, used) if call.answer and used else None


def _overlap(one: _ScopedCall, other: _ScopedCall) -> bool:
    return one.start_ns <= other.last_ns and other.start_ns <= one.last_ns


def _may_be_one(one: _ScopedCall, other: _ScopedCall) -> bool:
    """Return whether nothing recorded on both sides shows that these are two calls."""
    if (one.named and other.named) or one.failed != other.failed:
        return False
    if one.models and other.models and one.models.isdisjoint(other.models):
        return False
    return not one.asked.isdisjoint(other.asked) or one.id_kinds.isdisjoint(other.id_kinds)


def _no_other_tokens(one: _ScopedCall, other: _ScopedCall) -> bool:
    used = _used(one), _used(other)
    return _may_be_one(one, other) and (None in used or used[0] == used[1])


def _no_other_answer(one: _ScopedCall, other: _ScopedCall) -> bool:
    return _may_be_one(one, other) and (not one.answer or not other.answer or one.answer == other.answer)


def _say_otherwise(one: _ScopedCall, other: _ScopedCall) -> bool:
    """Return whether both recorded different answers: no text of one is in the other's, or only one requested tools."""
    if not one.answer or not other.answer:
        return bool((one.answer and not one.asked and other.asked) or (other.answer and not other.asked and one.asked))
    return one.answer not in other.answer and other.answer not in one.answer


def _without_usage(one: _ScopedCall, other: _ScopedCall) -> bool:
    """Return whether both recorded an answer, not two different models, and at least one of them no usage."""
    return _may_be_one(one, other) and (one.silent or other.silent)

"""Two instrumentations of one program that hang side by side, where one of them does not write the provider's response id.

A framework's callbacks write spans that are no parents of the SDK's: a streamed answer then has an id in the one scope only.
When every answered call of the one scope that has no id and is not known to be the other's already holds in its time (or
lies in that of) a call of the other scope of the same model with the very same tokens, each its own, they are the same
calls; of models that the other scope never names nothing is asked. A call of which an instrumentation was told nothing (of a
stream, for instance) has no tokens to compare: then both scopes must have as many calls.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import permutations

from clawtrace.engine.span import Span

__all__ = ["joined_by_time"]

_CANDIDATES = 64
"""Calls in whose time another one lies that are compared with it: more at once are not told apart."""

_CLOCK_NS = 1_000_000
"""OpenTelemetry's SDK for JavaScript starts a span at a whole millisecond and ends it a measured time later: up to this early."""


def joined_by_time(spans: Sequence[Span], group: Sequence[int | None]) -> list[int | None]:
    """Return for each span its group, after joining the model calls that two scopes tell of side by side."""
    calls = _Calls(spans, group)
    if len(calls.told) < 2:
        return list(group)
    pairs = list(permutations(calls.told, 2))
    for bare, other in pairs:
        _join(spans, calls, bare, other, untold=False)
    if any(_silent(spans[index]) for told in calls.told.values() for index in told.values()):
        for bare, other in pairs:
            _join(spans, calls, bare, other, untold=True)
    return [number if span.kind != "llm" else calls.of(number) for span, number in zip(spans, group, strict=True)]


def _join(spans: Sequence[Span], calls: _Calls, bare: str, other: str, *, untold: bool) -> None:
    """Join the calls of a scope that have no id to those of another one, where that can be done with all that were answered.

    Args:
        spans: of the run.
        calls: what they tell of.
        bare: the scope whose calls have no id.
        other: the scope that may tell of them, too.
        untold: whether calls are compared of which a scope was told nothing.
    """
    theirs = calls.left(other, bare)
    models = {model for index in theirs for model in _models(spans[index])}
    mine = [index for index in calls.left(bare, other) if calls.nameless(bare, index)]
    mine = [index for index in mine if not (own := _models(spans[index])) or own & models]
    if not mine or not theirs:
        return
    answered = [index for index in mine if not spans[index].failed]
    others = [index for index in theirs if not spans[index].failed]
    as_many = len(answered) == len(others)
    rules = [_same_tokens]
    if untold and (as_many or not any(all(_silent(spans[index]) for index in side) for side in (answered, others))):
        rules.append(_untold if as_many else _half_told)
    pairs = _held(spans, mine, theirs, rules)
    if len(pairs) < len(mine):
        inside = {held: by for by, held in _held(spans, theirs, mine, rules).items()}
        pairs = max(pairs, inside, key=len)
    if pairs.keys() >= set(answered):
        for index, twin in pairs.items():
            calls.join(index, twin)


class _Calls:
    """The model calls of a run while they are joined, each by the first of its spans in each scope."""

    def __init__(self, spans: Sequence[Span], group: Sequence[int | None]) -> None:
        self.told: dict[str, dict[int, int]] = defaultdict(dict)
        """By scope the spans of its calls, in order of start, by their groups."""
        self._group = group
        self._joined: dict[int, int] = {}
        self._scopes: dict[int, set[str]] = defaultdict(set)
        self._named: set[tuple[str, int]] = set()
        for index, (span, number) in enumerate(zip(spans, group, strict=True)):
            if span.kind == "llm" and number is not None:
                self.told[span.scope].setdefault(number, index)
                self._scopes[number].add(span.scope)
                if span.response_id is not None:
                    self._named.add((span.scope, number))

    def of(self, number: int | None) -> int | None:
        """Return the group that a group has become."""
        while number is not None and number in self._joined:
            number = self._joined[number]
        return number

    def left(self, scope: str, other: str) -> list[int]:
        """Return the spans of the calls of a scope of which the other one is not known to tell."""
        return [
            index for number, index in self.told[scope].items() if other not in self._scopes[self.of(number) or number]
        ]

    def nameless(self, scope: str, index: int) -> bool:
        """Return whether the scope wrote no response id for the call of a span."""
        return (scope, self._group[index]) not in self._named

    def join(self, index: int, twin: int) -> None:
        """Make the call of one span a part of that of another."""
        old, new = self.of(self._group[index]), self.of(self._group[twin])
        if old is not None and new is not None and not self._scopes[old] & self._scopes[new]:
            self._joined[old] = new
            self._scopes[new] |= self._scopes[old]


def _held(
    spans: Sequence[Span], outer: Sequence[int], inner: Sequence[int], rules: Sequence[Callable[[Span, Span], bool]]
) -> dict[int, int]:
    """Return for each outer span an inner one of the same answer that its time holds, by the first rule first; each is held once."""
    found: dict[int, int] = {}
    for alike in rules:
        taken = set(found.values())
        outer = [index for index in outer if index not in found]
        inner = [index for index in inner if index not in taken]
        found |= _fitting(spans, outer, inner, alike)
    return found


def _fitting(
    spans: Sequence[Span], outer: Sequence[int], inner: Sequence[int], alike: Callable[[Span, Span], bool]
) -> dict[int, int]:
    """Return for each outer span an inner one that its time holds: of several the one that ends first, so that most are held."""
    found: dict[int, int] = {}
    place = 0
    running: list[tuple[int, int]] = []
    """Outer spans that have started, by their ends."""
    for held in inner:  # both come in order of start
        span = spans[held]
        while place < len(outer) and spans[outer[place]].start_ns <= span.start_ns:
            insort(running, (spans[outer[place]].last_ns, outer[place]))
            place += 1
        first = bisect_left(running, (span.last_ns - _CLOCK_NS, -1))
        for at in range(first, min(first + _CANDIDATES, len(running))):
            if alike(spans[running[at][1]], span):
                found[running.pop(at)[1]] = held
                break
    return found


def _models(span: Span) -> set[str]:
    return {name for name in (span.request_model, span.response_model) if name is not None}


def _same_tokens(one: Span, other: Span) -> bool:
    """Return whether both tell of the same usage, or of a failure; that one does not name its model tells nothing else."""
    models = [_models(one), _models(other)]
    if one.failed != other.failed or (all(models) and models[0].isdisjoint(models[1])):
        return False
    tokens = (one.input_tokens, one.output_tokens)
    return tokens == (other.input_tokens, other.output_tokens) and (one.failed or (None not in tokens and any(tokens)))


def _half_told(one: Span, other: Span) -> bool:
    """Return whether both tell of an answer of the same model, and one of them of its usage."""
    return _untold(one, other) and _silent(one) != _silent(other)


def _untold(one: Span, other: Span) -> bool:
    """Return whether both tell of an answer of the same model, and one of them at least not of its usage."""
    answered = not one.failed and not other.failed and (_silent(one) or _silent(other))
    return answered and not _models(one).isdisjoint(_models(other))


def _silent(span: Span) -> bool:
    """Return whether a call tells no usage: no request is empty, so zero is an instrumentation that was told nothing."""
    return not span.failed and not span.input_tokens and not span.output_tokens

"""Two instrumentations of one program that hang side by side, where one of them does not write the provider's response id.

A framework's callbacks write spans that are no parents of the SDK's: a streamed answer then has an id in the one scope only.
When every model call of the scope without ids holds in its time (or lies in that of) a call of the other scope of the same
model with the very same tokens, each its own, they are the same calls. A scope that was told nothing of the answers (of
streams, for instance) has no tokens to compare: then each call of the other scope must hold one of it, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from itertools import permutations

from clawtrace.engine.span import Span

__all__ = ["joined_by_time"]

_CANDIDATES = 64
"""Calls within the time of one that are compared: more at once are not told apart."""

_CLOCK_NS = 1_000_000
"""OpenTelemetry's SDK for JavaScript starts a span at a whole millisecond and ends it a measured time later: up to this early."""


def joined_by_time(spans: Sequence[Span], group: Sequence[int | None]) -> list[int | None]:
    """Return for each span its group, after joining the model calls that two scopes tell of side by side."""
    if len({span.scope for span in spans if span.kind == "llm"}) < 2:
        return list(group)
    told: dict[str, dict[int, int]] = defaultdict(dict)
    identified = set()
    for index, (span, number) in enumerate(zip(spans, group, strict=True)):
        if span.kind == "llm" and number is not None:
            told[span.scope].setdefault(number, index)
            if span.response_id is not None:
                identified.add(span.scope)
    same: dict[int, int] = {}
    silent = {scope for scope, calls in told.items() if all(_silent(spans[index]) for index in calls.values())}
    for bare, other in sorted(permutations(told, 2), key=lambda pair: pair[0] in silent):
        joined = same.keys() | same.values()
        if (
            other in silent
            or bare in identified
            or told[bare].keys() & told[other].keys()
            or told[bare].keys() & joined
        ):
            continue
        calls, others = list(told[bare].values()), list(told[other].values())
        if bare in silent and len(calls) != len(others):
            continue
        for pairs in (_held(spans, calls, others), {held: by for by, held in _held(spans, others, calls).items()}):
            if len(pairs) == len(calls):
                same |= {number: group[pairs[index]] or 0 for number, index in told[bare].items()}
                break
    # A third scope may have been joined to one that was joined itself.
    kept = {number: same.get(to, to) for number, to in same.items()}
    return [number if number is None else kept.get(number, number) for number in group]


def _held(spans: Sequence[Span], outer: Sequence[int], inner: Sequence[int]) -> dict[int, int]:
    """Return for each outer span the first inner one of the same answer that its time holds; each is held once."""
    starts = [spans[index].start_ns for index in inner]
    taken: set[int] = set()
    found: dict[int, int] = {}
    for index in outer:
        span = spans[index]
        first = bisect_left(starts, span.start_ns)
        for held in inner[first : first + _CANDIDATES]:
            if spans[held].start_ns > span.last_ns:
                break
            if held not in taken and spans[held].last_ns <= span.last_ns + _CLOCK_NS and _alike(span, spans[held]):
                found[index] = held
                taken.add(held)
                break
    return found


def _alike(one: Span, other: Span) -> bool:
    """Return whether both tell of the same answer of the same model, or of a failure."""
    models = {one.request_model, one.response_model} & {other.request_model, other.response_model} - {None}
    if not models or one.failed != other.failed:
        return False
    if _silent(one) or _silent(other):
        return _silent(one) != _silent(other)
    tokens = (one.input_tokens, one.output_tokens)
    return tokens == (other.input_tokens, other.output_tokens) and (one.failed or None not in tokens)


def _silent(span: Span) -> bool:
    """Return whether a call tells no usage: no request is empty, so zero is an instrumentation that was told nothing."""
    return not span.failed and not span.input_tokens and not span.output_tokens

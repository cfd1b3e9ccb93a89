"""Streamed answers that an instrumentation records in a separate span, next to that of the request.

The request's span ends when the stream begins and knows nothing of the answer; another span of its scope, written when the
stream has ended, repeats the request and adds the rest (dialect role `answer`). The two are one call.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.calls.rules import STREAM_ANSWER
from clawtrace.facts.spans.span import Span

__all__ = ["join_answers"]


def join_answers(spans: Sequence[Span], ledger: Ledger) -> None:
    """Make each answer a part of the call whose request it repeats."""
    if "answer" not in {span.role for span in spans}:
        return
    waiting: dict[tuple[object, ...], _Requests] = defaultdict(_Requests)
    for index, span in enumerate(spans):  # in order of start
        if span.kind != "llm":
            continue
        if span.role != "answer":
            if _asks(span):
                waiting[_place(span)].add(index, span.input_digest)
        elif (request := waiting[_place(span)].take(span.input_digest)) is not None:
            call = ledger.group[request]
            if call is not None:
                ledger.join(index, call, STREAM_ANSWER)


class _Requests:
    """Requests that have no answer yet, in order."""

    def __init__(self) -> None:
        self._all: list[int] = []
        self._alike: dict[int | None, deque[int]] = defaultdict(deque)
        self._answered: set[int] = set()

    def add(self, index: int, digest: int | None) -> None:
        """Add one, of these input messages."""
        self._all.append(index)
        self._alike[digest].append(index)

    def take(self, digest: int | None) -> int | None:
        """Return the request that an answer of these input messages belongs to.

        Several that ask the same are answered in their order; of others the last is the likeliest.
        """
        while self._all and self._all[-1] in self._answered:
            self._all.pop()
        alike = self._alike[digest]
        while alike and alike[0] in self._answered:
            alike.popleft()
        if not self._all:
            return None
        request = alike[0] if alike else self._all[-1]
        self._answered.add(request)
        return request


def _asks(span: Span) -> bool:
    """Return whether a span is a request without its answer."""
    return span.kind == "llm" and span.role is None and not span.failed and span.output_tokens is None


def _place(span: Span) -> tuple[object, ...]:
    """Return what an answer shares with its request: both are below the same span, or are roots of separate traces."""
    trace_id = None if span.parent_sid is None and span.parent_span_id is None else span.trace_id
    return span.scope, span.request_model, span.parent_sid, span.parent_span_id, trace_id

"""Which failed spans are causes of failure, and which only pass a failure on to their parents."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.facts.spans.span import Span

__all__ = ["FailureCauses"]


def _same_words(one: str | None, other: str | None) -> bool:
    return bool(one and other and (one in other or other in one))


class FailureCauses:
    """Separates the causes of failure from spans that only pass a failure on to their parents."""

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
                siblings = self._below.get(parent, [])
                few, many = sorted((frontier, siblings), key=len)  # a long list goes up many levels as it is
                many += few
                self._below[parent] = many
            self._last_start[parent] = max(self._last_start.get(parent, last), last)
        return cause

    def _passed_on(self, index: int, message: str | None, last_start: int) -> bool:
        span = self._spans[index]
        return _same_words(span.message, message) or last_start <= span.last_ns

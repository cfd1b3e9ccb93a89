"""Input tokens include cached ones (spec: span-model.md §4), also where one call of an instrumentation proves it for others.

A call with more cached than input tokens was written by an instrumentation that leaves the cached ones out. So were the
other calls of that scope and provider, whose numbers alone would not show it.
"""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.facts.spans.span import Span

__all__ = ["with_cached_input"]


def with_cached_input(spans: Sequence[Span]) -> Sequence[Span]:
    """Return the spans of a run with cached tokens in the input of every model call that left them out."""
    proved = {(span.scope, span.provider) for span in spans if span.cache_proved and span.kind == "llm"}
    return [_whole(span) if (span.scope, span.provider) in proved else span for span in spans] if proved else spans


def _whole(span: Span) -> Span:
    cached = (span.cache_read_tokens or 0) + (span.cache_write_tokens or 0)
    if span.kind != "llm" or span.excludes_cache or span.cache_proved or span.input_tokens is None or not cached:
        return span
    return span._replace(input_tokens=span.input_tokens + cached)

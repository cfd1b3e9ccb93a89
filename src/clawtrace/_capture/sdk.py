"""What a capture has to do with opentelemetry-sdk: a span processor on tracer providers, and spans as OTLP bytes."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.environment_variables import OTEL_SDK_DISABLED
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from clawtrace._capture.scopes import span_ended, span_started
from clawtrace.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.context import Context

__all__ = ["current_span_ids", "encode", "global_provider", "hook_up", "sampling_of"]

_CHUNK_SPANS = 512
_REMOTE = 0x300
"""OTLP span flags: bit 8 says that bit 9 is known, bit 9 that the parent is remote."""
_WHOLE = ("AlwaysOnSampler", "ParentBased{root:AlwaysOnSampler")
"""How samplers that let every span through describe themselves."""

_lock = threading.RLock()
_hooked: WeakValueDictionary[int, object] = WeakValueDictionary()
"""Providers that have our processor, by identity: the SDK has no way to remove one, so each gets one for good."""


class _Processor(SpanProcessor):
    """Tells captures which spans start and end; without an open capture it does nothing."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Give the span to the captures it belongs to."""
        span_started(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Keep the span."""
        span_ended(span)


def global_provider(*, create: bool) -> object:
    """Return the process's tracer provider; where none is set, with `create` a new one of the SDK becomes it.

    Returns:
        None without `create` when none is set that takes span processors.
    """
    with _lock:
        if not create:
            found = trace.get_tracer_provider()
            return found if hasattr(found, "add_span_processor") else None
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            trace.set_tracer_provider(_recording_provider())
        return trace.get_tracer_provider()


def _recording_provider() -> TracerProvider:
    """Return a provider that records every span, also where the environment disables the SDK: a capture asks for spans."""
    disabled = os.environ.pop(OTEL_SDK_DISABLED, None)
    try:
        return TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    finally:
        if disabled is not None:
            os.environ[OTEL_SDK_DISABLED] = disabled


def hook_up(provider: object) -> None:
    """Put our processor on a tracer provider, and on every other one of the SDK, once.

    Raises:
        UsageError: it takes no span processors, or records nothing.
    """
    add: Callable[[SpanProcessor], None] | None = getattr(provider, "add_span_processor", None)
    if add is None:
        raise UsageError(
            f"the tracer provider is {type(provider).__qualname__}, which does not accept span processors: set one "
            "of opentelemetry-sdk, give it as `capture(tracer_provider=…)`, or capture child processes only "
            "(`in_process=False`)."
        )
    if isinstance(provider, TracerProvider) and isinstance(provider.get_tracer(__name__), trace.NoOpTracer):
        raise UsageError(
            "the tracer provider records no span, because OTEL_SDK_DISABLED was `true` when it was made: unset the variable, "
            "or capture child processes only (`in_process=False`)."
        )
    _add_to(provider, add)
    _hook_up_all()


def _add_to(provider: object, add: Callable[[SpanProcessor], None]) -> None:
    with _lock:
        if id(provider) not in _hooked:
            if isinstance(provider, TracerProvider):
                # A subclass may let a processor that is added replace those it has.
                TracerProvider.add_span_processor(provider, _Processor())
            else:
                add(_Processor())
            _hooked[id(provider)] = provider


@cache
def _hook_up_all() -> None:
    """Put our processor on every tracer provider of the SDK in this process, also on those made from now on."""
    made = TracerProvider.__init__

    @wraps(made)
    def init(self: TracerProvider, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        _add_to(self, self.add_span_processor)

    TracerProvider.__init__ = init  # type: ignore[method-assign]
    for one in gc.get_objects():
        if issubclass(type(one), TracerProvider):
            _add_to(one, one.add_span_processor)


def sampling_of(provider: object) -> str:
    """Return the sampler of a provider in its own words; empty when it is known to let every span through, or unknown."""
    sampler = getattr(provider, "sampler", None)
    said = str(sampler.get_description()) if sampler is not None else ""
    return "" if said.startswith(_WHOLE) else said


def current_span_ids() -> tuple[int, int] | None:
    """Return trace id and span id of the current span; None when there is none."""
    context = trace.get_current_span().get_span_context()
    return (context.trace_id, context.span_id) if context.is_valid else None


def encode(spans: Sequence[ReadableSpan], is_outside: Callable[[int], bool]) -> tuple[list[bytes], list[str]]:
    """Return spans as requests of OTLP, and the names of spans that cannot be encoded.

    Args:
        spans: ended ones, and running ones, which get no end.
        is_outside: whether the span of this id has its parent outside of the capture, which makes it a remote one.
    """
    bodies, failed = [], []
    for start in range(0, len(spans), _CHUNK_SPANS):
        chunk = spans[start : start + _CHUNK_SPANS]
        try:
            bodies.append(_request(chunk, is_outside))
        except Exception:  # any error of protobuf about a value that it cannot hold: the other spans are good
            for span in chunk:
                try:
                    bodies.append(_request([span], is_outside))
                except Exception:
                    failed.append(span.name)
    return bodies, failed


def _request(spans: Iterable[ReadableSpan], is_outside: Callable[[int], bool]) -> bytes:
    request = encode_spans(list(spans))
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                if is_outside(int.from_bytes(span.span_id, "big")):
                    span.flags |= _REMOTE
    return request.SerializeToString()

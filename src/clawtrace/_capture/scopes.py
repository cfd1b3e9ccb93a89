"""Which capture a span of this process belongs to: decided when the span starts, from the context it starts in.

The context says it, in two ways, because code drops either of them: OpenTelemetry's context is carried to threads by
instrumentation and replaced by servers that extract one from a request; a variable of our own does the opposite. A
span without such a context (a thread that was started plainly) belongs to the only open capture. Where several are
open its capture is unknown: none takes it, and each of them knows that something may be missing.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import deque
from contextvars import ContextVar
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from opentelemetry import context as otel_context

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span

__all__ = ["CaptureScope", "current_scope", "span_ended", "span_started"]

_CURRENT: ContextVar[CaptureScope | None] = ContextVar("clawtrace-capture", default=None)
_KEY = otel_context.create_key("clawtrace-capture")

# A garbage collection may end spans at any point of this very code, so the lock lets its own thread in again.
_lock = threading.RLock()
_open: tuple[CaptureScope, ...] = ()
"""Captures that take spans, in the order in which they began; replaced whole, so that it can be read without the lock."""
_homes: WeakValueDictionary[int, CaptureScope] = WeakValueDictionary()
"""The capture in which a trace began, by trace id, also after its end."""


_inherited: tuple[CaptureScope, ...] = ()
"""Captures of the process that this one was forked from; its memory is out of reach."""


def _after_fork() -> None:
    global _lock, _open, _inherited
    _lock = threading.RLock()
    _open, _inherited = (), (*_inherited, *_open)


os.register_at_fork(after_in_child=_after_fork)


class CaptureScope:
    """The spans of one capture, as the SDK's hooks see them."""

    def __init__(self, parent: CaptureScope | None) -> None:
        """Make a scope that takes nothing yet; what it takes its `parent` takes too."""
        self.chain: tuple[CaptureScope, ...] = (*(parent.chain if parent else ()), self)
        """Captures that take what this one takes, the outermost first."""
        self.strays = 0
        """Spans taken although their context named no capture."""
        self.unclear = 0
        """Spans not taken although they may belong here."""
        self._running: dict[int, Span] = {}
        self._ended: deque[ReadableSpan] = deque()
        self._known: set[int] = set()
        self._outside: set[int] = set()
        self._forked = mmap.mmap(-1, 1)

    @property
    def is_open(self) -> bool:
        """Whether it takes spans that start now."""
        return self in _open

    @property
    def forked(self) -> bool:
        """Whether a forked child of this process started spans, which stay in that child."""
        return self._forked[0] != 0

    def note_fork(self) -> None:
        """Report a span that starts here to the process that this one was forked from."""
        self._forked[0] = 1

    @property
    def running(self) -> list[Span]:
        """Spans that have started and not ended."""
        with _lock:
            return list(self._running.values())

    def holds(self, span_id: int) -> bool:
        """Whether a span started in this capture."""
        return span_id in self._known

    def is_outside(self, span_id: int) -> bool:
        """Whether the parent of a span of this capture is a span of this process that began outside of it."""
        return span_id in self._outside

    def begin(self) -> None:
        """Take spans from here on; the current context names this capture."""
        global _open
        with _lock:
            _open = (*_open, self)
        self._enter(self)

    def end(self) -> None:
        """Take no more; spans that run are handed over as they are."""
        global _open
        with _lock:
            _open = tuple(scope for scope in _open if scope is not self)
            self._ended.extend(self._running.values())
            self._running.clear()
        if _CURRENT.get() is self:
            self._enter(_nearest_open(self))

    def take_ended(self) -> list[ReadableSpan]:
        """Return the spans that ended since the last call."""
        with _lock:
            ended = list(self._ended)
            self._ended.clear()
            return ended

    def started(self, span: Span, *, stray: bool = False) -> None:
        """Take a span that starts; the lock is held."""
        span_id, parent = span.get_span_context().span_id, span.parent
        if span_id in self._known:
            return
        self.strays += stray
        self._running[span_id] = span
        if parent is not None and not parent.is_remote and parent.span_id not in self._known:
            self._outside.add(span_id)
        self._known.add(span_id)

    def ended(self, span_id: int, span: ReadableSpan) -> None:
        """Keep a span that ends; the lock is held."""
        if self._running.pop(span_id, None) is not None:
            self._ended.append(span)

    @staticmethod
    def _enter(scope: CaptureScope | None) -> None:
        """Name `scope` in the current context, for good: the block's end may be in another context than its beginning."""
        _CURRENT.set(scope)
        otel_context.attach(otel_context.set_value(_KEY, scope))


def current_scope() -> CaptureScope | None:
    """Return the open capture that the current context names."""
    return _named_by((_CURRENT.get(), otel_context.get_value(_KEY)))


def span_started(span: Span, parent_context: Context | None) -> None:
    """Give a span that starts to the captures it belongs to."""
    for scope in _inherited:
        scope.note_fork()
    if not (_open or _homes):
        return
    with _lock:
        trace_id = span.get_span_context().trace_id
        home = _homes.get(trace_id)
        named = _named_by(
            (otel_context.get_value(_KEY, parent_context), home, _CURRENT.get(), otel_context.get_value(_KEY))
        )
        if named is not None:
            _homes.setdefault(trace_id, named)
            for scope in named.chain:
                if scope.is_open:
                    scope.started(span)
        if home is not None and not home.is_open:
            home.started(span)  # its trace goes on after its end
        elif named is None:
            _take_stray(span, trace_id)


def span_ended(span: ReadableSpan) -> None:
    """Keep a span that ends in the captures that took it."""
    context = span.get_span_context()
    if context is None:
        return
    with _lock:
        home = _homes.get(context.trace_id)
        scopes = dict.fromkeys((*_open, *(home.chain if home else ())))
        for scope in scopes:
            scope.ended(context.span_id, span)


def _take_stray(span: Span, trace_id: int) -> None:
    """Give a span that no context names a capture for to the one that all others are inside of, if there is one."""
    for scope in _open:
        if all(scope in other.chain for other in _open):
            _homes.setdefault(trace_id, scope)
            scope.started(span, stray=True)
        else:
            scope.unclear += 1


def _named_by(claims: Iterable[object]) -> CaptureScope | None:
    """Return the open capture that the first claim names, or one inside of it that a later claim names."""
    found: CaptureScope | None = None
    for claim in claims:
        scope = _nearest_open(claim) if isinstance(claim, CaptureScope) else None
        if scope is not None and (found is None or found in scope.chain):
            found = scope
    return found


def _nearest_open(scope: CaptureScope) -> CaptureScope | None:
    return next((one for one in reversed(scope.chain) if one.is_open), None)

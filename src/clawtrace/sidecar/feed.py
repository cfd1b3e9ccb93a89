"""Live events of the service for clients over HTTP: runs that begin and close, and verdicts.

The verdicts that it gave last are kept for its page.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from clawtrace.model.verdict import RunResult
from clawtrace.support.figures import utc_text

__all__ = ["Feed", "LastVerdicts"]

_KEPT = 1_000
"""Events that a follower may be behind."""
_FOLLOWERS = 16
_HEARTBEAT_SECONDS = 15.0
_RECEIVED_SECONDS = 1.0
"""Time between two looks at whether spans came."""


class Feed:
    """The last events, numbered, and their followers; safe to use from several threads.

    Args:
        received: returns what changes when spans arrive.
    """

    def __init__(self, received: Callable[[], object] = lambda: None) -> None:
        self._received = received
        self._lock = threading.Lock()
        self._events: deque[tuple[int, bytes]] = deque(maxlen=_KEPT)
        self._last = 0
        self._waking: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._closed = False

    def put(self, event: str, **fields: Any) -> None:
        """Add an event."""
        now = utc_text(datetime.now(UTC))
        with self._lock:
            self._last += 1
            line = json.dumps({"seq": self._last, "time": now, "event": event, **fields}, default=str)
            self._events.append((self._last, line.encode() + b"\n"))
            self._wake()

    def close(self) -> None:
        """End every follower, once it has what there is."""
        with self._lock:
            self._closed = True
            self._wake()

    def follow(self, after: int, *, waits: bool) -> AsyncGenerator[bytes] | None:
        """Return the events after a number as lines of JSON; None where too many follow already.

        An event ``lost`` says how many are no more kept, ``received`` that spans came, at most once a second; neither has a
        number. An empty line comes when nothing did for a while.

        Args:
            after: number of the last event that is known; 0 for all that are kept.
            waits: whether to go on with events to come.
        """
        with self._lock:
            if len(self._waking) >= _FOLLOWERS:
                return None
        return self._lines(after, waits=waits)

    async def _lines(self, after: int, *, waits: bool) -> AsyncGenerator[bytes]:
        me = asyncio.get_running_loop(), asyncio.Event()
        try:
            with self._lock:  # here and not in `follow`: of a generator that never begins, nothing is taken back
                self._waking.add(me)
            silent, received = 0.0, self._received()
            while True:
                me[1].clear()
                with self._lock:
                    lines = [line for seq, line in self._events if seq > after]
                    missed = self._last - len(lines) - after
                    after, closed = max(self._last, after), self._closed
                if missed > 0:
                    lines.insert(0, json.dumps({"event": "lost", "events": missed}).encode() + b"\n")
                before, received = received, self._received()
                if waits and received != before:
                    lines.append(b'{"event": "received"}\n')
                silent = 0.0 if lines else silent + _RECEIVED_SECONDS
                if lines or silent >= _HEARTBEAT_SECONDS:
                    silent = 0.0
                    yield b"".join(lines) or b"\n"
                if closed or not waits:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(me[1].wait(), _RECEIVED_SECONDS)
        finally:
            with self._lock:
                self._waking.discard(me)

    def _wake(self) -> None:
        for loop, event in self._waking:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)


_MOST = 5_000
"""Verdicts that are kept: some 6 KB each, most of it their SQL."""


class LastVerdicts:
    """The last results of the most recently judged runs; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: dict[str, RunResult] = {}
        self._verdicts = 0

    def put(self, result: RunResult) -> None:
        """Keep a result in place of an earlier one of the run; the oldest go where there are too many."""
        with self._lock:
            self._drop(result.run_id)
            self._results[result.run_id] = result
            self._verdicts += len(result.verdicts)
            while self._verdicts > _MOST and len(self._results) > 1:
                self._drop(next(iter(self._results)))

    def forget(self, run_ids: Iterable[str]) -> None:
        """Drop the results of runs that are deleted."""
        with self._lock:
            for run_id in run_ids:
                self._drop(run_id)

    def _drop(self, run_id: str) -> None:
        result = self._results.pop(run_id, None)
        self._verdicts -= len(result.verdicts) if result else 0

    def of(self, run_id: str) -> RunResult | None:
        """Return the last result of a run; None where it was not judged, or long ago."""
        with self._lock:
            return self._results.get(run_id)

    def counts(self, run_id: str) -> dict[str, int] | None:
        """Return how many verdicts of each status a run was given last."""
        result = self.of(run_id)
        return None if result is None else dict(Counter(one.status.value for one in result.standings))

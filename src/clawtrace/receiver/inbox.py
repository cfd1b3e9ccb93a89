"""The queue between the servers and the writer, bounded in bytes."""

from __future__ import annotations

import threading
import time
from collections import deque

from clawtrace.receiver.request import Request

__all__ = ["ByteBudget", "Inbox"]

_GATHER_SECONDS = (0.005, 0.025)
"""How long the next group waits for more requests while none comes, and at most. A commit costs milliseconds however
few spans it has; senders that were just answered soon send again, and one that sends alone never waits."""


class ByteBudget:
    """Bytes that may be held at the same time, by bodies still arriving and requests not yet committed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """Reserved bytes."""
        return self._used

    def take(self, count: int) -> bool:
        """Reserve `count` bytes; False when they do not fit now."""
        with self._lock:
            if self._used + count > self._limit:
                return False
            self._used += count
            return True

    def give(self, count: int) -> None:
        """Free `count` reserved bytes."""
        with self._lock:
            self._used -= count


class Inbox:
    """Requests whose bytes are reserved, in order of arrival; an event among them marks a flush."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[Request | threading.Event] = deque()
        self._closed = False
        self._wanted = 1
        """How many requests the next group waits for."""

    def put(self, item: Request | threading.Event) -> bool:
        """Queue a request, or an event that is set when all before it is committed; False after `close`."""
        with self._condition:
            if self._closed:
                return False
            self._waiting.append(item)
            if not isinstance(item, Request):
                self._wanted = 1
            if len(self._waiting) == 1 or len(self._waiting) >= self._wanted:
                self._condition.notify()
            return True

    def expect(self, senders: int) -> None:
        """Say that so many senders are about to be answered: they may send again, as those that wait already have."""
        with self._condition:
            if all(isinstance(item, Request) for item in self._waiting):
                self._wanted = max(len(self._waiting) + senders, 1)

    def close(self) -> None:
        """Take no more; what is queued is still handed out."""
        with self._condition:
            self._closed = True
            self._condition.notify()

    def drain(self, limit: int, seconds: float | None = None) -> tuple[list[Request], list[threading.Event]] | None:
        """Wait for work and return what is there, up to `limit` bytes of requests; None when closed and empty.

        With `seconds`, nothing is returned when nothing came for so long.
        """
        requests: list[Request] = []
        events: list[threading.Event] = []
        size = 0
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._closed, seconds)
            if not self._waiting and self._closed:
                return None
            self._gather()
            while self._waiting and size < limit:
                item = self._waiting.popleft()
                if isinstance(item, Request):
                    requests.append(item)
                    size += len(item.body)
                else:
                    events.append(item)
            self._wanted = 1
        return requests, events

    def _gather(self) -> None:
        """Wait, as long as more come, until each sender that was waiting or answered before has sent again."""
        pause, longest = _GATHER_SECONDS
        end = time.monotonic() + longest
        count = 0
        while count < len(self._waiting) < self._wanted and not self._closed and time.monotonic() < end:
            count = len(self._waiting)
            self._condition.wait_for(lambda: len(self._waiting) >= self._wanted or self._closed, pause)

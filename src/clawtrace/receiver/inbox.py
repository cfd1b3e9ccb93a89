"""The queue between the servers and the writer, bounded in bytes."""

from __future__ import annotations

import threading
from collections import deque

from clawtrace.receiver.request import Request

__all__ = ["Budget", "Inbox"]


class Budget:
    """Bytes that may be held at the same time, by bodies still arriving and requests not yet committed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._lock = threading.Lock()

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
    """Requests whose bytes are reserved, in order of arrival; None in it marks a flush."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[Request | threading.Event] = deque()
        self._closed = False

    def put(self, item: Request | threading.Event) -> bool:
        """Queue a request, or an event that is set when all before it is committed; False after `close`."""
        with self._condition:
            if self._closed:
                return False
            self._waiting.append(item)
            self._condition.notify()
            return True

    def close(self) -> None:
        """Take no more; what is queued is still handed out."""
        with self._condition:
            self._closed = True
            self._condition.notify()

    def drain(self, limit: int) -> tuple[list[Request], list[threading.Event]] | None:
        """Wait for work and return what is there, up to `limit` bytes of requests; None when closed and empty."""
        requests: list[Request] = []
        events: list[threading.Event] = []
        size = 0
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._closed)
            if not self._waiting:
                return None
            while self._waiting and size < limit:
                item = self._waiting.popleft()
                if isinstance(item, Request):
                    requests.append(item)
                    size += len(item.body)
                else:
                    events.append(item)
        return requests, events

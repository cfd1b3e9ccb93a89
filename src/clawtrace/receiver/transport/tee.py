"""Everything received is also forwarded to the user's own OTLP/HTTP endpoint, so that it misses nothing.

Best effort: forwarding begins after the sender has its answer, waits in memory that is bounded, and never holds
anything up. What could not be forwarded is counted and reported when the receiver stops.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from clawtrace.errors import ReceiverError
from clawtrace.receiver.limits import TeeSettings, endpoint_problem, is_loopback
from clawtrace.receiver.request import Request

__all__ = ["Tee", "TeeTally"]

_LOG = logging.getLogger("clawtrace.receiver")

_RETRY_SECONDS = (0.2, 1.0)
"""Pauses before the second and the third try of a request that may be tried again."""
_RETRIED = frozenset({429, 502, 503, 504})
"""HTTP statuses after which the OTLP specification lets a sender retry."""
_ANSWER_BYTES = 1 << 20
_ENTRY_BYTES = 512
"""Memory of a waiting request in addition to its body, in bytes."""


@dataclass(frozen=True, slots=True)
class TeeTally:
    """Requests, in numbers."""

    forwarded: int
    dropped: Counter[str]
    """By reason."""


class _FailedError(Exception):
    """A request was not taken; the text says why."""

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again
        """Whether a second try may help."""


class Tee:
    """Forwards requests from a separate thread.

    Args:
        setting: what messages call it.
        what: what messages call the requests.
    """

    def __init__(self, settings: TeeSettings, setting: str = "receiver.tee", what: str = "received requests") -> None:
        self.settings = settings
        self._setting = setting
        self._what = what
        self._target = _Target(settings)
        self._queue: deque[Request] = deque()
        self._queued = 0
        """Bytes of the queue and of the request on its way."""
        self._busy = False
        self._forwarded = 0
        self._dropped: Counter[str] = Counter()
        self._condition = threading.Condition()
        self._stopping = threading.Event()
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._work, name="clawtrace-tee", daemon=True)

    def start(self, own_ports: Sequence[int]) -> None:
        """Start forwarding.

        Raises:
            ReceiverError: the endpoint is the receiver itself, by one of its ports.
        """
        url = urlsplit(self.settings.endpoint)
        if is_loopback(url.hostname or "") and url.port in own_ports:
            raise ReceiverError(
                f"`{self._setting}` {self.settings.endpoint!r} is this receiver itself; name another endpoint, or another "
                "`http_port`"
            )
        self._thread.start()

    def put(self, request: Request) -> None:
        """Queue a request to be forwarded; it is dropped if too much waits. Returns at once."""
        size = len(request.body) + _ENTRY_BYTES
        with self._condition:
            if self._stopping.is_set() or self._queued + size > self.settings.queue_bytes:
                self._dropped["its queue was full (`queue_bytes`)"] += 1
                return
            self._queue.append(request)
            self._queued += size
            self._condition.notify()

    def stop(self) -> None:
        """Forward waiting requests for as long as allowed, and report what was lost."""
        if not self._thread.is_alive():
            return
        drain = self.settings.drain_s
        with self._condition:
            self._deadline = time.monotonic() + drain
            self._stopping.set()
            self._condition.notify()
        self._thread.join(drain)
        if self._thread.is_alive():
            self._target.cut()
            self._thread.join(1.0)
        tally = self.tally()
        lost = tally.dropped.total()
        if lost:
            reasons = "; ".join(f"{count} × {reason}" for reason, count in tally.dropped.most_common(5))
            _LOG.warning(
                "warning: %d of %d %s were not forwarded to %s %s: %s",
                lost,
                lost + tally.forwarded,
                self._what,
                "the tee" if self._setting == "receiver.tee" else f"`{self._setting}`",
                self.settings.endpoint,
                reasons,
            )

    def tally(self) -> TeeTally:
        """Return what was forwarded and dropped so far; after the end nothing is left that is neither."""
        with self._condition:
            dropped = self._dropped.copy()
            left = len(self._queue) + self._busy
            if self._stopping.is_set() and left:
                dropped["not accepted before the end"] += left
            return TeeTally(self._forwarded, dropped)

    # --------------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (request := self._next()) is not None:
            try:
                failure = self._forward(request)
            except Exception as error:  # after any error of one request the next is forwarded
                failure = f"clawtrace failed on it: {error}"
            with self._condition:
                self._busy = False
                self._queued -= len(request.body) + _ENTRY_BYTES
                if failure:
                    self._dropped[failure] += 1
                else:
                    self._forwarded += 1
        self._target.close()

    def _next(self) -> Request | None:
        """Wait for a request; None at the end, or when there is no time left for what waits."""
        with self._condition:
            self._condition.wait_for(lambda: self._queue or self._stopping.is_set())
            if not self._queue or time.monotonic() >= self._deadline:
                return None
            self._busy = True
            return self._queue.popleft()

    def _forward(self, request: Request) -> str:
        """Send one request and return why it was lost; empty when it was taken."""
        for pause in (*_RETRY_SECONDS, None):
            try:
                self._target.post(request)
            except _FailedError as failure:
                if pause is None or not failure.again or self._stopping.wait(pause):
                    return str(failure)
            else:
                break
        return ""


class _Target:
    """The endpoint, over one connection that is kept."""

    def __init__(self, settings: TeeSettings) -> None:
        problem = endpoint_problem(settings.endpoint)
        if problem:
            raise ReceiverError(f"`receiver.tee`: {problem}")
        url = urlsplit(settings.endpoint)
        assert url.hostname is not None
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(url.hostname, url.port, timeout=settings.timeout_s)
        self._base = url.path.rstrip("/")
        self._headers = dict(settings.headers)
        self._seconds = settings.timeout_s

    def post(self, request: Request) -> None:
        """Send one request as it was received, decompressed.

        Raises:
            _FailedError: it was not taken.
        """
        try:
            status = self._exchange(request)
        except TimeoutError:
            self.close()
            raise _FailedError(f"no answer in {self._seconds:g} s", again=False) from None
        except (OSError, http.client.HTTPException) as error:
            self.close()  # the other side may have closed a connection that rested: the next try makes a new one
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise _FailedError(f"cannot be reached or does not speak HTTP ({reason})", again=True) from None
        if not 200 <= status < 300:
            raise _FailedError(f"answered {status}", again=status in _RETRIED)

    def _exchange(self, request: Request) -> int:
        content_type = "application/json" if request.json else "application/x-protobuf"
        headers = self._headers | {"content-type": content_type, "user-agent": "clawtrace"}
        self._connection.request("POST", f"{self._base}/v1/{request.signal}", request.body, headers)
        answer = self._connection.getresponse()
        if len(answer.read(_ANSWER_BYTES)) == _ANSWER_BYTES:
            self.close()
        return answer.status

    def close(self) -> None:
        """End the connection; the next request makes a new one."""
        self._connection.close()

    def cut(self) -> None:
        """End an exchange that another thread waits for."""
        connection = self._connection.sock
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

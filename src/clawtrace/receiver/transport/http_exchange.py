"""One HTTP/1.1 request and its answer, as an ASGI application sees them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Protocol

__all__ = ["App", "HttpExchange", "HttpWire"]

_LOG = logging.getLogger("clawtrace.receiver.http")

App = Callable[
    [dict[str, Any], Callable[[], Awaitable[dict[str, Any]]], Callable[[dict[str, Any]], Awaitable[None]]],
    Awaitable[None],
]
"""An ASGI application."""

_BROKEN = b"clawtrace failed on this request; see its log"


class HttpWire(Protocol):
    """The connection of a request."""

    async def write(self, data: bytes) -> None:
        """Send bytes, once the other side has read what was sent before."""

    def hold(self) -> None:
        """Read no more for now."""

    def release(self) -> None:
        """Read on."""

    def answered(self, exchange: HttpExchange) -> None:
        """An answer is complete."""

    def close(self) -> None:
        """End the connection."""


class HttpExchange:
    """A request, whose body comes in while the application runs.

    Args:
        scope: ASGI's description of the request.
        awaited: whether the sender waits for `100 Continue` before it sends the body.
        keep_alive: whether the connection outlives the answer.
    """

    _HIGH = 1 << 16
    """Bytes of a body that are read ahead."""

    def __init__(self, wire: HttpWire, scope: dict[str, Any], *, awaited: bool, keep_alive: bool) -> None:
        self._wire = wire
        self._scope = scope
        self._awaited = awaited
        self.keep_alive = keep_alive
        self.whole = False
        """Whether all of the body came."""
        self.complete = False
        """Whether the answer is complete."""
        self._lost = False
        self._body = bytearray()
        self._came = asyncio.Event()
        """Set when there is something to receive."""
        self._started = False
        self._chunked = False

    # -- what comes ------------------------------------------------------------------------------------------------

    def body_came(self, data: bytes) -> None:
        """Take a piece of the body; what comes after the answer is passed over."""
        if not self.complete:
            self._body += data
            if len(self._body) > self._HIGH:
                self._wire.hold()
            self._came.set()

    def body_ended(self) -> None:
        """The body is whole."""
        self.whole = True
        self._came.set()

    def lost(self) -> None:
        """The connection has ended."""
        self._lost = True
        self._came.set()

    # -- the application's side ------------------------------------------------------------------------------------

    async def run(self, app: App) -> None:
        """Have an application answer."""
        try:
            await app(self._scope, self.receive, self.send)
        except Exception:
            _LOG.exception("an HTTP request could not be answered")
            if self._started:
                self._wire.close()
                return
            self.keep_alive = False
            length = str(len(_BROKEN)).encode()
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", length)]
            await self.send({"type": "http.response.start", "status": 500, "headers": headers})
            await self.send({"type": "http.response.body", "body": _BROKEN})

    async def receive(self) -> dict[str, Any]:
        """Return what came since the last time, or that the connection has ended."""
        if self._awaited:
            self._awaited = False
            await self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not (self._lost or self.complete):
            self._wire.release()
            await self._came.wait()
            self._came.clear()
        if (self._lost and not (self.whole and self._body)) or self.complete:
            return {"type": "http.disconnect"}
        body = bytes(self._body)
        self._body.clear()
        return {"type": "http.request", "body": body, "more_body": not self.whole}

    async def send(self, message: dict[str, Any]) -> None:
        """Send the head of the answer, or a piece of its body."""
        if self._lost:
            return
        if message["type"] == "http.response.start":
            self._started = True
            await self._wire.write(self._head(message["status"], message["headers"]))
            return
        body: bytes = message.get("body", b"")
        more: bool = message.get("more_body", False)
        if self._scope["method"] == "HEAD":
            body = b""
        elif self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        if body:
            await self._wire.write(body)
        if not more:
            self.complete = True
            self._came.set()
            if not self.keep_alive:
                self._wire.close()
            self._wire.answered(self)

    def _head(self, status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
        if all(name != b"content-length" for name, _ in headers):
            self._chunked = self._scope["http_version"] == "1.1" and self._scope["method"] != "HEAD"
            self.keep_alive &= self._chunked
        framing = [(b"transfer-encoding", b"chunked")] if self._chunked else []
        closing = [] if self.keep_alive else [(b"connection", b"close")]
        lines = [b"%b: %b" % field for field in (*headers, *framing, *closing)]
        first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()
        return b"\r\n".join((first, *lines, b"", b""))

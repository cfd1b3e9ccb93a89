"""One HTTP/1.1 request and its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from clawtrace.receiver.attribution.connections import Connection

__all__ = ["HttpExchange"]

_LOG = logging.getLogger("clawtrace.receiver.http")

_BROKEN = b"clawtrace failed on this request; see its log"
_HIGH = 1 << 16
"""Bytes of a body that are read ahead."""

Fields = Sequence[tuple[bytes, bytes]]
"""Headers of an answer."""


class HttpExchange:
    """A request, whose body comes in while it is being answered.

    Args:
        wire: its connection (`http_protocol`).
        path: without percent-encoding and query string.
        headers: names in lower case.
        version: of HTTP, ``1.0`` or ``1.1``.
        keep_alive: whether the connection outlives the answer.
    """

    def __init__(
        self,
        wire: Any,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str],
        version: str,
        *,
        keep_alive: bool,
    ) -> None:
        self._wire = wire
        self.link: Connection = wire.link
        self.tls: bool = wire.tls
        self.method, self.path, self.query, self.headers = method, path, query, headers
        self._version = version
        self._awaited = headers.get("expect", "").lower() == "100-continue"
        """Whether the sender waits for `100 Continue` before it sends the body."""
        self.keep_alive = keep_alive
        self.whole = False
        """Whether all of the body came."""
        self.complete = False
        """Whether the answer is complete."""
        self._started = False
        self._lost = False
        self._body = bytearray()
        self._came = asyncio.Event()
        """Set when there is something to be read."""

    # -- what comes ------------------------------------------------------------------------------------------------

    def body_came(self, data: bytes) -> None:
        """Take a piece of the body; what comes after the answer is passed over."""
        if not self.complete:
            self._body += data
            if len(self._body) > _HIGH:
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

    async def run(self, app: Callable[[HttpExchange], Awaitable[None]]) -> None:
        """Have an application answer."""
        try:
            await app(self)
        except Exception:
            _LOG.exception("an HTTP request could not be answered")
            if self._started:
                self._wire.close()
                return
            self.keep_alive = False
            await self.answer(500, _BROKEN, "text/plain; charset=utf-8")

    async def piece(self) -> bytes | None:
        """Return what came of the body since the last time, all of it where it is `whole`; None where the connection has ended."""
        if self._awaited:
            self._awaited = False
            await self._wire.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not (self._lost or self.complete):
            self._wire.release()
            await self._came.wait()
            self._came.clear()
        if (self._lost and not (self.whole and self._body)) or self.complete:
            return None
        body = bytes(self._body)
        self._body.clear()
        return body

    async def answer(self, status: int, body: bytes, content_type: str, headers: Fields = ()) -> None:
        """Send the answer."""
        if self._lost:
            return
        await self._head(status, content_type, ((b"content-length", str(len(body)).encode()), *headers))
        if body and self.method != "HEAD":
            await self._wire.write(body)
        self._end()

    async def flow(self, pieces: AsyncGenerator[bytes], content_type: str) -> None:
        """Send an answer in pieces as they come, until they end or the other side has gone."""
        chunked = self._version == "1.1"
        self.keep_alive &= chunked
        framing = ((b"transfer-encoding", b"chunked"),) if chunked else ()
        gone = asyncio.ensure_future(self._gone())
        try:
            await self._head(200, content_type, ((b"cache-control", b"no-store"), *framing))
            async for piece in pieces:
                if gone.done():
                    break
                await self._wire.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if not self._lost:
                await self._wire.write(b"0\r\n\r\n" if chunked else b"")
                self._end()
        finally:
            gone.cancel()
            await pieces.aclose()

    async def _gone(self) -> None:
        while await self.piece() is not None:
            pass

    async def _head(self, status: int, content_type: str, headers: Fields) -> None:
        self._started = True
        closing = () if self.keep_alive else ((b"connection", b"close"),)
        fields = ((b"content-type", content_type.encode()), *headers, *closing)
        first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()
        await self._wire.write(b"\r\n".join((first, *[b"%b: %b" % field for field in fields], b"", b"")))

    def _end(self) -> None:
        self.complete = True
        self._came.set()
        if not self.keep_alive:
            self._wire.close()
        self._wire.answered()

"""Connections of exporters: those that speak HTTP/2 are relayed, all others are read by h11, and their requests answered one after another."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import h11

from clawtrace.receiver.attribution.connections import Connection
from clawtrace.receiver.transport.admission import Site, unread
from clawtrace.receiver.transport.relay import Relay

__all__ = ["GoneError", "HttpConnection", "HttpExchange"]

_LOG = logging.getLogger("clawtrace.receiver.http")

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The first bytes of an HTTP/2 client (RFC 9113 §3.4); no request of HTTP/1.1 may have this method."""
_HEAD_LIMIT = 64 * 1024
_HIGH = 1 << 16
"""Bytes that are read ahead."""
_KEEP_ALIVE_SECONDS = 120
"""Longer than exporters rest: closing a connection that is about to be used costs them a retry."""
_HELLO = b"\x16\x03"
"""The first bytes of a TLS client."""
_TLS = "the client started a TLS handshake, and this receiver has no TLS: its address begins with `http://`"
_NOT_HTTP = "this is not an HTTP/1.1 request"
_LONG_HEAD = f"the request's headers are longer than {_HEAD_LIMIT} bytes"
_ORIGIN = re.compile("^https?://[^/?]*", re.IGNORECASE)
"""The part before the path if a client uses this server as a proxy (RFC 9112 §3.2.2)."""
_BROKEN = b"clawtrace failed on this request; see its log"
_TEXT = "text/plain; charset=utf-8"

Fields = Sequence[tuple[bytes, bytes]]
"""Headers of an answer."""


class GoneError(Exception):
    """Nothing more can be read of a connection."""


class HttpConnection(asyncio.Protocol):
    """One connection.

    A request that was sent whole is answered (or at least stored) although the sender closed its side right after it; headers
    are bounded in bytes and time; TLS where there is none is explained; the offer of another protocol is passed over
    (RFC 9110 §7.8; Java's own HTTP client offers HTTP/2 in each request).

    Args:
        port: which of our ports it came to.
        app: answers a request.
        server: address of the gRPC server.
    """

    relayed = False

    def __init__(
        self, site: Site, port: int, app: Callable[[HttpExchange], Awaitable[None]], server: tuple[str, int]
    ) -> None:
        self.site = site
        self.link: Connection = site.connections.opened(port)
        self.transport: asyncio.Transport
        self.tls = False
        self.closing = False
        """Whether no more requests are taken."""
        self.wire = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_LIMIT)
        self._app = app
        self._server = server
        self._task: asyncio.Task[None]
        self._is_http = False
        """Whether it is certain that it does not speak HTTP/2."""
        self._exchange: HttpExchange | None = None
        """The request that is being answered."""
        self._came = asyncio.Event()
        """Set when there is something to be read."""
        self._ahead = 0
        """Bytes that came since reading waited for some."""
        self._ended = False
        """Whether the sender has closed its side, or both."""
        self._writable = asyncio.Event()
        self._writable.set()

    @property
    def halfway(self) -> bool:
        """Whether bytes came of a request that has not begun, or a request has not reached the queue."""
        return bool(self.wire.trailing_data[0]) or (self._exchange is not None and self._exchange.reading)

    def has_unread(self) -> bool:
        """Return whether the socket holds bytes, or an end, that the event loop is about to read."""
        deaf = self.transport.is_closing() or self._ended or self._ahead > _HIGH
        return not deaf and unread(self.transport.get_extra_info("socket"))

    def shutdown(self) -> None:
        """Accept no more requests, and close the connection when the current one is answered."""
        self.closing = True
        if self._exchange is None:
            self.transport.close()

    # -- asyncio's side --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.tls = transport.get_extra_info("ssl_object") is not None
        self.site.visitors.add(self)
        self.site.activity.set()
        self._task = asyncio.get_running_loop().create_task(self._serve())
        self.site.tasks.add(self._task)
        self._task.add_done_callback(self.site.tasks.discard)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        """Record the end of the connection; bytes already received are still read."""
        self._end()
        self._writable.set()
        self._task.add_done_callback(self._left)

    def pause_writing(self) -> None:
        """Delay answers until the client has read the previous ones."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Send answers again."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Keep what came for the parser; where too much waits already, read no more for now."""
        self.wire.receive_data(data)
        if not self._is_http and (begun := self.wire.trailing_data[0]).startswith(_PREFACE):
            self._task.cancel()
            self.site.visitors.discard(self)
            Relay(self.site, self.link, self.transport, begun, self._server)
            return
        self._ahead += len(data)
        if self._ahead > _HIGH:
            self.transport.pause_reading()
        self._came.set()
        self.site.activity.set()

    def eof_received(self) -> bool:
        """Keep the connection until what came is answered."""
        self._end()
        return not self.tls

    def _left(self, _task: asyncio.Task[None]) -> None:
        self.site.visitors.discard(self)
        self.site.connections.closed(self.link)
        self.site.activity.set()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self.wire.receive_data(b"")
        self._came.set()
        self.site.activity.set()

    # -- requests and answers --------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Answer one request after the other, once it is certain that they are of HTTP/1.1."""
        with suppress(TimeoutError):
            while _PREFACE.startswith(begun := self.wire.trailing_data[0]) and not self._ended:
                await self._more(self.site.head_seconds if begun else None)
        self._is_http = True
        try:
            idle = None
            while (head := await self._head(idle)) is not None:
                self._exchange = HttpExchange(self, head)
                await self._answer(self._exchange)
                while self.wire.their_state is h11.SEND_BODY:  # what comes after the answer is passed over
                    await self.event(_KEEP_ALIVE_SECONDS)
                self._exchange = None
                self.site.activity.set()
                if self.wire.our_state is not h11.DONE or self.wire.their_state is not h11.DONE:
                    break
                self.wire.start_next_cycle()
                idle = _KEEP_ALIVE_SECONDS
        except (GoneError, TimeoutError):
            pass
        finally:
            self.transport.close()

    async def _head(self, idle: float | None) -> h11.Request | None:
        """Return the head of the next request; None at the end of the connection.

        Args:
            idle: how long nothing may come, in seconds.
        """
        while not (self.wire.trailing_data[0] or self._ended):
            await self._more(idle)
        seconds = self.site.head_seconds
        try:
            event = await self.event(seconds)
        except TimeoutError:
            self._refuse(f"the request's headers did not end within {seconds:g} s")
            return None
        return event if isinstance(event, h11.Request) else None

    async def _answer(self, exchange: HttpExchange) -> None:
        try:
            await self._app(exchange)
        except Exception:
            _LOG.exception("an HTTP request could not be answered")
            if self.wire.our_state is not h11.SEND_RESPONSE:
                raise GoneError from None
            self.closing = True
            await exchange.answer(500, _BROKEN, _TEXT)

    async def event(self, seconds: float) -> Any:
        """Return the next event of h11.

        Args:
            seconds: how long nothing may come.

        Raises:
            GoneError: there is none: the connection has ended in the middle of a request, or what came is no request.
            TimeoutError: nothing came for so long.
        """
        while True:
            try:
                event = self.wire.next_event()
            except h11.RemoteProtocolError as error:
                if not self._ended:
                    begun = self.wire.trailing_data[0].startswith(_HELLO)
                    too_long = error.error_status_hint == 431
                    self._refuse(_TLS if begun else _LONG_HEAD if too_long else f"{_NOT_HTTP}: {error}")
                raise GoneError from None
            if event is not h11.NEED_DATA:
                self.site.activity.set()  # bytes that waited to be read have been
                return event
            if self.wire.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
            await self._more(seconds)

    async def send(self, *events: Any) -> None:
        """Send events of h11, once the other side has read what was sent before."""
        await self._writable.wait()
        data = b"".join([self.wire.send(event) or b"" for event in events])
        if not self.transport.is_closing():
            self.transport.write(data)

    async def _more(self, seconds: float | None) -> None:
        """Wait until something comes."""
        self._came.clear()
        if self._ahead > _HIGH:
            self.transport.resume_reading()
        self._ahead = 0
        async with asyncio.timeout(seconds):
            await self._came.wait()

    def _refuse(self, reason: str) -> None:
        """Answer bytes that are no request, and close the connection."""
        self.site.counters.turned_away(reason)
        if not self.transport.is_closing():
            head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {_TEXT}\r\nconnection: close\r\n"
            self.transport.write(f"{head}content-length: {len(reason)}\r\n\r\n{reason}".encode())
            self.transport.close()


class HttpExchange:
    """A request, whose body comes in while it is being answered, and its answer."""

    def __init__(self, wire: HttpConnection, head: h11.Request) -> None:
        path, _, query = _ORIGIN.sub("", head.target.decode("ascii")).partition("?")
        self._wire = wire
        self.link = wire.link
        self.tls = wire.tls
        self.method = head.method.decode("ascii")
        self.path = unquote(path) or "/"
        """Without percent-encoding and query string."""
        self.query = query
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        """Names in lower case."""
        self.reading = False
        """Whether it brings something for the queue, and has not reached it."""

    async def body(self, seconds: float) -> AsyncGenerator[bytes]:
        """Yield the body as it comes.

        Args:
            seconds: how long nothing of it may come.

        Raises:
            GoneError: the connection has ended before the body has.
            TimeoutError: nothing came for so long.
        """
        while isinstance(event := await self._wire.event(seconds), h11.Data):
            yield bytes(event.data)

    async def answer(self, status: int, body: bytes, content_type: str, headers: Fields = ()) -> None:
        """Send the answer."""
        head = self._response(status, content_type, ((b"content-length", b"%d" % len(body)), *headers))
        await self._wire.send(head, h11.Data(b"" if self.method == "HEAD" else body), h11.EndOfMessage())

    async def flow(self, pieces: AsyncGenerator[bytes], content_type: str) -> None:
        """Send an answer in pieces as they come, until they end or the other side has gone."""
        try:
            await self._wire.send(self._response(200, content_type, ((b"cache-control", b"no-store"),)))
            async for piece in pieces:
                if self._wire.transport.is_closing():
                    raise GoneError
                await self._wire.send(h11.Data(piece))
            await self._wire.send(h11.EndOfMessage())
        finally:
            await pieces.aclose()

    def _response(self, status: int, content_type: str, headers: Fields) -> h11.Response:
        closing = ((b"connection", b"close"),) if self._wire.closing else ()
        fields = [(b"content-type", content_type.encode()), *headers, *closing]
        return h11.Response(status_code=status, headers=fields, reason=HTTPStatus(status).phrase.encode())

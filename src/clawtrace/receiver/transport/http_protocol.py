"""Connections that speak HTTP/1.1, read by httptools, whose requests are answered one after another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from urllib.parse import unquote

import httptools

from clawtrace.receiver.attribution.connections import Connection
from clawtrace.receiver.transport.http_exchange import HttpExchange
from clawtrace.receiver.transport.site import Site, unread

__all__ = ["HttpConnection"]

_HEAD_LIMIT = 64 * 1024
_KEEP_ALIVE_SECONDS = 120
"""Longer than exporters rest: closing a connection that is about to be used costs them a retry."""
_HELLO = b"\x16\x03"
"""How a client begins to speak TLS."""
_TLS = "the client started a TLS handshake, and this receiver has no TLS: its address begins with `http://`"
_NOT_HTTP = "this is not an HTTP/1.1 request"
_LONG_HEAD = f"the request's headers are longer than {_HEAD_LIMIT} bytes"
_UPGRADE = (b"upgrade", b"http2-settings")
"""Headers of a request that offers another protocol (Java's own HTTP client offers HTTP/2 in each)."""


class HttpConnection(asyncio.Protocol):
    """One connection.

    A request that was sent whole is answered (or at least stored) although the sender closed its side right after it; headers
    are bounded in bytes and time; TLS where there is none is explained; the offer of another protocol is passed over
    (RFC 9110 §7.8) and the request read as it is.
    """

    relayed = False

    def __init__(self, site: Site, link: Connection, app: Callable[[HttpExchange], Awaitable[None]]) -> None:
        self.site = site
        self.link = link
        self.transport: asyncio.Transport
        self._app = app
        self._parser = self._new_parser()
        self.tls = False
        self._current: HttpExchange | None = None
        """The request that is being answered, or the last that was."""
        self._newest: HttpExchange | None = None
        """The request whose body is being read, or the last that was."""
        self._next: deque[HttpExchange] = deque()
        """Requests that came before those before them were answered."""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._in_head = False
        """Whether a request's headers have begun and not ended."""
        self._head_bytes = 0
        """Bytes that came since they began, without those that came with the first of them."""
        self._head_end: asyncio.TimerHandle | None = None
        """When headers that have begun must have ended."""
        self._idle_end: asyncio.TimerHandle | None = None
        self._held = False
        """Whether reading waits."""
        self._sender_ended = False
        self._writable = asyncio.Event()
        self._writable.set()

    @property
    def halfway(self) -> bool:
        """Whether headers have begun and not ended, or reading is held back until something before is done."""
        return self._in_head or (self._held and not self.transport.is_closing())

    def has_unread(self) -> bool:
        """Say whether the socket holds bytes, or an end, that the event loop is about to read."""
        if self.transport.is_closing() or self._sender_ended or self._held:
            return False
        socket = self.transport.get_extra_info("socket")
        return socket is not None and unread(socket.fileno())

    def shutdown(self) -> None:
        """Take no more requests: end the connection, once what is under way is answered."""
        if self._current is None or self._current.complete:
            self.transport.close()
        else:
            self._current.keep_alive = False

    # -- asyncio's side --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.tls = transport.get_extra_info("ssl_object") is not None
        self.site.visitors.add(self)
        self.site.activity.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        """Note the end of the connection."""
        for one in (self._current, *self._next):
            if one is not None:
                one.lost()
        self._next.clear()
        self._writable.set()
        self._head_is_over()
        self._not_idle()
        self.site.visitors.discard(self)
        self.site.connections.closed(self.link)
        self.site.activity.set()

    def pause_writing(self) -> None:
        """Have answers wait until the other side has read those it has."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Send answers again."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Feed the parser."""
        self._head_bytes += len(data)
        self._not_idle()
        while data:
            data = self._feed(data)
        if self._in_head:
            self._check_head()
        self.site.activity.set()

    def eof_received(self) -> bool:
        """Keep the connection until a request that came whole is answered; others are cut short."""
        self.site.activity.set()
        last = self._newest
        self._sender_ended = last is not None and last.whole and not last.complete and not self.tls
        return self._sender_ended

    # -- the exchanges' side ---------------------------------------------------------------------------------------

    async def write(self, data: bytes) -> None:
        """Send bytes, once the other side has read what was sent before."""
        await self._writable.wait()
        if not self.transport.is_closing():
            self.transport.write(data)

    def hold(self) -> None:
        """Read no more for now."""
        if not self._held:
            self._held = True
            self.transport.pause_reading()

    def release(self) -> None:
        """Read on."""
        if self._held and not self._next:
            self._held = False
            self.transport.resume_reading()

    def close(self) -> None:
        """End the connection."""
        self.transport.close()

    def answered(self) -> None:
        """Begin the next request, wait for one, or close what the sender has closed."""
        self.site.activity.set()
        if self.transport.is_closing():
            return
        if self._next:
            self._begin(self._next.popleft())
        elif self._sender_ended:
            self.transport.close()
        else:
            self._idle_end = asyncio.get_running_loop().call_later(_KEEP_ALIVE_SECONDS, self.transport.close)
        self.release()

    def _begin(self, exchange: HttpExchange) -> None:
        self._current = exchange
        task = asyncio.get_running_loop().create_task(exchange.run(self._app))
        self.site.tasks.add(task)
        task.add_done_callback(self.site.tasks.discard)

    def _not_idle(self) -> None:
        if self._idle_end is not None:
            self._idle_end.cancel()
            self._idle_end = None

    # -- httptools' side -------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Headers begin."""
        self._url, self._headers = b"", []
        self._in_head = True
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take a piece of the address."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Begin a request; one that offers another protocol is begun by `_decline`."""
        self._head_is_over()
        if self._parser.should_upgrade():
            return
        address = httptools.parse_url(self._url)
        path, query = address.path or b"/", address.query or b""
        version = self._parser.get_http_version()
        new = HttpExchange(
            self,
            self._parser.get_method().decode("ascii"),
            unquote(path.decode("ascii")),
            query.decode("latin-1"),
            {name.decode("latin-1"): value.decode("latin-1") for name, value in self._headers},
            version,
            keep_alive=version != "1.0" and self._parser.should_keep_alive(),
        )
        self._newest = new
        if self._current is None or self._current.complete:
            self._begin(new)
        else:
            self._next.append(new)
            self.hold()

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of a body."""
        if self._newest is not None:
            self._newest.body_came(body)

    def on_message_complete(self) -> None:
        """Pass on that a body is whole."""
        if self._newest is not None and not self._parser.should_upgrade():
            self._newest.body_ended()

    # --------------------------------------------------------------------------------------------------------------

    def _new_parser(self) -> httptools.HttpRequestParser:
        parser = httptools.HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # a second request after `connection: close`
        return parser

    def _feed(self, data: bytes) -> bytes:
        """Feed the parser, and return what it is to be fed next."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            return self._decline(data[offer.args[0] :])
        except httptools.HttpParserError:
            self._refuse(_TLS if data.startswith(_HELLO) else _NOT_HTTP)
        return b""

    def _decline(self, rest: bytes) -> bytes:
        """Return a request that offers another protocol as if it did not, to be read anew; `rest` came after its headers."""
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._refuse(_NOT_HTTP)
            return b""
        request = method + b" " + self._url + f" HTTP/{self._parser.get_http_version()}".encode()
        kept = [name + b": " + value for name, value in self._headers if name not in _UPGRADE]
        self._parser = self._new_parser()
        return b"\r\n".join((request, *kept, b"", rest))

    def _check_head(self) -> None:
        """Bound headers that have begun and not ended."""
        if self._head_bytes > _HEAD_LIMIT:
            self._refuse(_LONG_HEAD)
        elif self._head_end is None:
            seconds = self.site.head_seconds
            late = f"the request's headers did not end within {seconds:g} s"
            self._head_end = asyncio.get_running_loop().call_later(seconds, self._refuse, late)

    def _head_is_over(self) -> None:
        self._in_head = False
        if self._head_end is not None:
            self._head_end.cancel()
            self._head_end = None

    def _refuse(self, reason: str) -> None:
        """Answer bytes that are no request, and close the connection."""
        self._head_is_over()
        self.site.counters.turned_away(reason)
        if not self.transport.is_closing():
            head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
            self.transport.write(head + f"content-length: {len(reason)}\r\n\r\n{reason}".encode())
            self.transport.close()

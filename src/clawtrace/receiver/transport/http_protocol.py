"""Connections that speak HTTP/1.1: uvicorn's protocol, taught to say what state a connection is in.

uvicorn may change the class that this one extends: pyproject.toml allows no version that was not tested
(`tests/project/test_next_releases.py`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from clawtrace.receiver.attribution.connections import Connection
from clawtrace.receiver.transport.site import Site, unread

__all__ = ["ExporterProtocol"]

_LOG = logging.getLogger("clawtrace.receiver.http")
# What uvicorn warns of is a sender's mistake, which is answered and counted here.
_LOG.setLevel(logging.ERROR)

_HEAD_LIMIT = 64 * 1024
_HELLO = b"\x16\x03"
"""How a client begins to speak TLS."""
_TLS = "the client started a TLS handshake, and this receiver has no TLS: its address begins with `http://`"
_NOT_HTTP = "this is not an HTTP/1.1 request"
_LONG_HEAD = f"the request's headers are longer than {_HEAD_LIMIT} bytes"
_UPGRADE = (b"upgrade", b"http2-settings")
"""Headers of a request that offers another protocol (Java's own HTTP client offers HTTP/2 in each)."""


class ExporterProtocol(HttpToolsProtocol):
    """One connection.

    Beyond uvicorn's: a request that was sent whole is answered (or at least stored) although the sender closed its
    side right after it; headers are bounded in bytes and time; TLS where there is none is explained; the offer of another
    protocol is passed over (RFC 9110 §7.8) and the request read as it is, where uvicorn reads one without a body.
    """

    relayed = False
    transport: asyncio.Transport

    def __init__(self, site: Site, link: Connection, **arguments: Any) -> None:
        super().__init__(**arguments, app_state={"link": link})
        self.logger = _LOG
        self.site = site
        self.link = link
        self.in_head = False
        """Whether a request's headers have begun and not ended."""
        self._head_bytes = 0
        """Bytes that came since they began, without those that came with the first of them."""
        self._head_end: asyncio.TimerHandle | None = None
        """When headers that have begun must have ended."""
        self._sender_ended = False

    @property
    def halfway(self) -> bool:
        """Whether headers have begun and not ended, or reading is held back until something before is done."""
        return self.in_head or (self.flow.read_paused and not self.transport.is_closing())

    def has_unread(self) -> bool:
        """Say whether the socket holds bytes, or an end, that the event loop is about to read."""
        if self.transport.is_closing() or self._sender_ended or self.flow.read_paused:
            return False
        socket = self.transport.get_extra_info("socket")
        return socket is not None and unread(socket.fileno())

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note the connection."""
        super().connection_made(transport)
        self.site.visitors.add(self)
        self.site.activity.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end of the connection."""
        super().connection_lost(exc)
        self._head_is_over()
        self.site.visitors.discard(self)
        self.site.connections.closed(self.link)
        self.site.activity.set()

    def data_received(self, data: bytes) -> None:
        """Feed the parser."""
        self._head_bytes += len(data)
        self._unset_keepalive_if_required()
        while data:
            data = self._feed(data)
        if self.in_head:
            self._check_head()
        self.site.activity.set()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection until a request that came whole is answered; others are cut short by uvicorn."""
        self.site.activity.set()
        whole = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        self._sender_ended = whole and self.scheme == "http"
        return self._sender_ended

    def on_message_begin(self) -> None:
        """Note that headers begin."""
        super().on_message_begin()
        self.in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """Note that headers end."""
        super().on_headers_complete()
        self._head_is_over()

    def on_response_complete(self) -> None:
        """Close what the sender has closed, once nothing is left to answer."""
        super().on_response_complete()
        if self._sender_ended and self.cycle.response_complete and not self.pipeline:
            self.transport.close()
        self.site.activity.set()

    def _should_upgrade(self) -> bool:
        """Say that no request is to be begun where the parser stops at an offer: `_decline` begins it."""
        return True

    def _feed(self, data: bytes) -> bytes:
        """Feed the parser, and return what it is to be fed next."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self._refuse(_TLS if data.startswith(_HELLO) else _NOT_HTTP)
        except httptools.HttpParserUpgrade as offer:
            return self._decline(data[offer.args[0] :])
        return b""

    def _decline(self, rest: bytes) -> bytes:
        """Return a request that offers another protocol as if it did not, to be read anew; `rest` came after its headers."""
        method = self.scope["method"]
        if method == "CONNECT":
            self._refuse(_NOT_HTTP)
            return b""
        request = f"{method} ".encode() + self.url + f" HTTP/{self.parser.get_http_version()}".encode()
        kept = [name + b": " + value for name, value in self.headers if name not in _UPGRADE]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return b"\r\n".join((request, *kept, b"", rest))

    def _check_head(self) -> None:
        """Bound headers that have begun and not ended."""
        if self._head_bytes > _HEAD_LIMIT:
            self._refuse(_LONG_HEAD)
        elif self._head_end is None:
            seconds = self.site.head_seconds
            late = f"the request's headers did not end within {seconds:g} s"
            self._head_end = self.loop.call_later(seconds, self._refuse, late)

    def _head_is_over(self) -> None:
        self.in_head = False
        if self._head_end is not None:
            self._head_end.cancel()
            self._head_end = None

    def _refuse(self, reason: str) -> None:
        """Answer bytes that are no request, and close the connection."""
        self._head_is_over()
        self.site.counters.turned_away(reason)
        if not self.transport.is_closing():
            self.send_400_response(reason)

"""Which protocol a new connection speaks, recognised by its first bytes, whichever port it came to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from clawtrace.receiver.transport.relay import Relay
from clawtrace.receiver.transport.site import Site, unread

__all__ = ["FirstBytes"]

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""How a client of HTTP/2 begins (RFC 9113 §3.4); no request of HTTP/1.1 may have this method."""


class FirstBytes(asyncio.Protocol):
    """A connection of which nothing came so far, or less than shows its protocol.

    Args:
        over_http: makes what reads HTTP/1.1.
        server: address of the gRPC server.
    """

    relayed = False

    def __init__(
        self, site: Site, port: int, over_http: Callable[[FirstBytes], asyncio.Protocol], server: tuple[str, int]
    ) -> None:
        self.site = site
        self.link = site.connections.opened(port)
        self._over_http = over_http
        self._server = server
        self._begun = b""
        self._late: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport

    @property
    def halfway(self) -> bool:
        """Whether something came, and not enough."""
        return bool(self._begun)

    def has_unread(self) -> bool:
        """Say whether the socket holds bytes, or an end, that the event loop is about to read."""
        socket = self.transport.get_extra_info("socket")
        return not self.transport.is_closing() and socket is not None and unread(socket.fileno())

    def shutdown(self) -> None:
        """End a connection without requests."""
        self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.site.visitors.add(self)
        self.site.activity.set()

    def data_received(self, data: bytes) -> None:
        """Hand the connection to what reads its protocol, as soon as that is certain."""
        self._begun += data
        if len(self._begun) < len(_PREFACE) and _PREFACE.startswith(self._begun):
            if self._late is None:
                loop = asyncio.get_running_loop()
                self._late = loop.call_later(self.site.head_seconds, self._hand_to_http)
        elif self._begun.startswith(_PREFACE):
            self._leave()
            Relay(self.site, self.link, self.transport, self._begun, self._server)
        else:
            self._hand_to_http()
        self.site.activity.set()

    def eof_received(self) -> bool | None:
        """Let the other protocol say what it misses."""
        if self._begun:
            self._hand_to_http()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        """Note the end of the connection."""
        self._leave()
        self.site.connections.closed(self.link)
        self.site.activity.set()

    def _hand_to_http(self) -> None:
        """Have HTTP/1.1 read on; it answers what it cannot read."""
        self._leave()
        protocol = self._over_http(self)
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(self._begun)

    def _leave(self) -> None:
        self.site.visitors.discard(self)
        if self._late is not None:
            self._late.cancel()

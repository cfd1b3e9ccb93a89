"""A connection that speaks HTTP/2: its bytes go to the gRPC server, and the server's come back.

gRPC's own server cannot be handed a connection that was accepted elsewhere, and cannot hand one on, so bytes are carried
between two sockets of this machine (docs/adr/016-one-port-for-both-protocols.md).
"""

from __future__ import annotations

import asyncio
import time

from clawtrace.receiver.attribution.connections import Connection
from clawtrace.receiver.request import Request
from clawtrace.receiver.transport.admission import Site, unread

__all__ = ["Relay"]

_GONE = "a gRPC connection could not be passed to the gRPC server: {}"


class Relay(asyncio.BufferedProtocol):
    """The exporter's side of one connection.

    It ends when both sides have: what the exporter sent before it closed is read by the gRPC server to its end, which
    then closes its own side.

    Args:
        transport: the exporter's side.
        first: what came of it so far.
    """

    relayed = True

    def __init__(
        self, site: Site, link: Connection, transport: asyncio.Transport, first: bytes, server: tuple[str, int]
    ) -> None:
        self.site = site
        self.link = link
        self.transport = transport
        self._first = first
        self._ended = False
        """Whether the exporter has closed its side."""
        self._held = True
        """Whether reading waits until the server takes what was read."""
        self._inner: asyncio.Transport | None = None
        """The server's side, once there is one."""
        self._over = False
        """Whether the server has closed its side."""
        site.visitors.add(self)
        transport.pause_reading()
        transport.set_protocol(self)
        self._connecting = asyncio.get_running_loop().create_task(self._connect(server))

    @property
    def halfway(self) -> bool:
        """Whether the server has not taken what was read, or not yet read an ended connection to its end."""
        return not self._over and (self._held or self._ended)

    def has_unread(self) -> bool:
        """Return whether the socket holds bytes, or an end, that the event loop is about to read."""
        deaf = self._held or self._ended or self.transport.is_closing()
        return not deaf and unread(self.transport.get_extra_info("socket"))

    def shutdown(self) -> None:
        """Nothing: the gRPC server ends its connections itself."""

    # -- the exporter's side ---------------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (asyncio's signature)
        """Return where to put what comes."""
        return self.site.chunk

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what the exporter sent."""
        if self._inner is not None:
            self._inner.write(bytes(self.site.chunk[:nbytes]))
        self.site.activity.set()

    def eof_received(self) -> bool:
        """Pass on that the exporter sends no more; answers may still go out, where the transport can be half closed."""
        self._end()
        return self.transport.get_extra_info("ssl_object") is None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        """Pass on the end, and let the server read all earlier bytes even if its answers are no longer read."""
        self._end()
        self.resume_writing()
        if self._over:
            self.site.visitors.discard(self)
            self.site.activity.set()

    def pause_writing(self) -> None:
        """Stop reading the server's answers until the exporter has read the previous ones."""
        if self._inner is not None:
            self._inner.pause_reading()

    def resume_writing(self) -> None:
        """Read the server's answers again."""
        if self._inner is not None:
            self._inner.resume_reading()

    # -- the server's side -----------------------------------------------------------------------------------------

    async def _connect(self, server: tuple[str, int]) -> None:
        loop = asyncio.get_running_loop()
        try:
            inner, _ = await loop.create_connection(lambda: _Inner(self), *server)
        except OSError as error:
            reason = _GONE.format(error.strerror or error)
            unknown = Request("traces", "grpc", b"", False, time.time_ns(), self.link.port, connection=self.link)
            self.site.desk.refused(unknown, reason)
            self.inner_lost()
            return
        inner.set_write_buffer_limits(high=0)  # held as soon as, and as long as, anything is left to be written
        self.site.connections.relayed(self.link, inner.get_extra_info("sockname")[1])
        self._inner = inner
        self.release()
        inner.write(self._first)
        self._first = b""
        if self._ended:
            inner.write_eof()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            if self._inner is not None and not self._inner.is_closing():
                self._inner.write_eof()
            self.site.activity.set()

    def answer(self, data: bytes) -> None:
        """Pass on what the server sent."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def hold(self) -> None:
        """Read no more until the server has taken what was read."""
        self._held = True
        self.transport.pause_reading()

    def release(self) -> None:
        """Read again."""
        self._held = False
        self.transport.resume_reading()
        self.site.activity.set()

    def inner_lost(self) -> None:
        """The server has closed its side: it has read everything, or will read no more."""
        self._over = True
        if self.transport.is_closing():
            self.site.visitors.discard(self)
        self.transport.close()
        self.site.connections.closed(self.link)
        self.site.activity.set()


class _Inner(asyncio.BufferedProtocol):
    """The gRPC server's side of a relay."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._chunk = relay.site.chunk

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 (asyncio's signature)
        return self._chunk

    def buffer_updated(self, nbytes: int) -> None:
        self._relay.answer(bytes(self._chunk[:nbytes]))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        self._relay.inner_lost()

    def pause_writing(self) -> None:
        self._relay.hold()

    def resume_writing(self) -> None:
        self._relay.release()

"""What the connections of the announced ports share, and what each must be able to say of itself."""

from __future__ import annotations

import asyncio
import select
from typing import Protocol

from clawtrace.receiver.attribution.connections import Connection
from clawtrace.receiver.transport.admission import Desk

__all__ = ["Site", "Visitor", "unread"]

_CHUNK = 1 << 18
"""Bytes that are taken from a socket at once."""


class Visitor(Protocol):
    """An open connection, in the hands of its reader."""

    link: Connection
    transport: asyncio.Transport

    relayed: bool
    """Whether its bytes go to the gRPC server."""

    @property
    def halfway(self) -> bool:
        """Whether something that was read of it has not been handed on."""

    def has_unread(self) -> bool:
        """Say whether the socket holds bytes, or an end, that the event loop is about to read."""

    def shutdown(self) -> None:
        """Take no more requests."""


class Site:
    """What the connections of one receiver share; used in its event loop only."""

    def __init__(self, desk: Desk, *, head_seconds: float) -> None:
        self.desk = desk
        self.connections = desk.connections
        self.counters = desk.counters
        self.head_seconds = head_seconds
        """How long the headers of a request may take."""
        self.visitors: set[Visitor] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """Those that answer requests over HTTP, one for each connection."""
        self.activity = asyncio.Event()
        """Set whenever a connection's state changes."""
        self.chunk = memoryview(bytearray(_CHUNK))
        """Where relayed bytes are between being read and being written."""

    def matters(self, link: Connection, run_no: int) -> bool:
        """Say whether a connection may still bring something of the run: it did before, or is of no run so far."""
        runs = self.connections.runs_of(link)
        return not runs or run_no in runs

    def relaying(self) -> bool:
        """Say whether a connection is open whose bytes go to the gRPC server."""
        return any(one.relayed for one in self.visitors)

    def unsettled(self, run_no: int) -> tuple[bool, bool]:
        """Say whether anything of the run may be on its way, and whether some of that waits in a socket."""
        visitors = [one for one in self.visitors if self.matters(one.link, run_no)]
        waiting = any(one.has_unread() for one in visitors)
        return waiting or any(one.halfway for one in visitors), waiting


def unread(descriptor: int) -> bool:
    """Say whether a socket has bytes, an end or a new connection to be read."""
    if descriptor < 0:
        return False
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))

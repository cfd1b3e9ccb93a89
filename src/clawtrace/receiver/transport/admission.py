"""Shared by both servers: authentication, limits, the record of refused requests, and the open connections."""

from __future__ import annotations

import asyncio
import hmac
import select
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from clawtrace.errors import StoreError
from clawtrace.model.raw import Receipt
from clawtrace.receiver.attribution.attribute import NO_RUN, Attribution
from clawtrace.receiver.attribution.connections import Connection, Connections, Counters
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.receiver.request import Request
from clawtrace.receiver.writer import Writer

if TYPE_CHECKING:
    import grpc

__all__ = ["NO_TOKEN", "PRESSURE", "STOPPING", "Desk", "Site", "Work", "unread"]

PRESSURE = "the receiver's queue is full; try again"
STOPPING = "the receiver is stopping"
NO_TOKEN = "a token is required: send `authorization: Bearer TOKEN` or `x-clawtrace-token: TOKEN`"


Work = Callable[[Iterator[bytes], "grpc.ServicerContext"], Iterator[bytes]]
"""Answers a call, whose messages it is given: yields each message of the answer; a `RefusedError` of `grpc_server` refuses the call."""


@dataclass(eq=False, repr=False)
class Desk:
    """The front desk of the receiver; safe to use from several threads."""

    settings: ReceiverSettings
    writer: Writer
    _attribution: Attribution
    connections: Connections
    counters: Counters
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _open_runs: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.producers = dict(self.settings.producers)
        """Token by name; replaced as a whole."""

    def run_opened(self, run_no: int) -> None:
        """A run has been announced; what cannot be read from now on may be its own."""
        with self._lock:
            self._open_runs.add(run_no)

    def run_closed(self, run_no: int) -> None:
        """A run is closed."""
        with self._lock:
            self._open_runs.discard(run_no)

    def allowed(self, authorization: str, token: str) -> bool:
        """Return whether a request may come in, by its two headers (empty when absent)."""
        tokens = (*filter(None, (self.settings.token,)), *self.producers.values())
        if not tokens:
            return not self.settings.producers  # the last one was taken away
        scheme, _, bearer = authorization.partition(" ")
        given = token or (bearer.strip() if scheme.lower() == "bearer" else "")
        encoded = given.encode("utf-8", "surrogateescape")
        return any(hmac.compare_digest(encoded, token.encode()) for token in tokens)

    def refused(self, request: Request, reason: str) -> None:
        """Record a request that was not read; it may come again.

        It is counted for the run that its header or path names, else for the runs that its connection carried so far,
        else for every open run: it may have been of any of them, and none may claim to be complete. Metrics decide
        nothing, so a request of theirs is counted in the total only.
        """
        self._lost(request, reason, refused=1)

    def rejected(self, request: Request, reason: str) -> None:
        """Record a request that was read and will never be accepted, for the same runs as `refused`."""
        self._lost(request, reason, rejected=1)

    def lost_before(self, items: int, reason: str) -> None:
        """Record that a Collector lost items: they may be of any open run, and none may claim to be complete."""
        with self._lock:
            runs = set(self._open_runs)
        for run_no in runs:
            self.writer.refused(Receipt(run_no, 0, time.time_ns(), "", "", refused=items, reason=reason), 0)

    def _lost(self, request: Request, reason: str, **counts: int) -> None:
        if request.signal == "metrics":
            self.counters.turned_away(reason)
            return
        runs = set() if request.connection is None else self.connections.runs_of(request.connection)
        if named := request.header_run or request.path_run or request.given_run:
            try:
                runs = {self._attribution.number(named)}
            except StoreError:
                runs = set()
        if not runs:
            with self._lock:
                runs = set(self._open_runs)
        for run_no in {run for run in runs if run not in self._attribution.deleted} or {NO_RUN}:
            receipt = Receipt(run_no, 0, request.arrival_ns, request.protocol, request.signal, reason=reason, **counts)
            self.writer.refused(receipt, request.port)


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
        """Return whether the socket holds bytes, or an end, that the event loop is about to read."""

    def shutdown(self) -> None:
        """Stop accepting requests."""


class Site:
    """State shared by the connections of one receiver; used in its event loop only."""

    def __init__(self, desk: Desk, *, head_seconds: float) -> None:
        self.desk = desk
        self.connections = desk.connections
        self.counters = desk.counters
        self.head_seconds = head_seconds
        """The longest time for a request's headers, in seconds."""
        self.visitors: set[Visitor] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """Tasks that answer requests over HTTP, one for each connection."""
        self.activity = asyncio.Event()
        """Set whenever a connection's state changes."""
        self.chunk = memoryview(bytearray(_CHUNK))
        """Buffer for relayed bytes."""

    def matters(self, link: Connection, run_no: int) -> bool:
        """Return whether a connection may still bring something of the run: it did before, or is of no run so far."""
        runs = self.connections.runs_of(link)
        return not runs or run_no in runs

    def relaying(self) -> bool:
        """Return whether a connection is open whose bytes go to the gRPC server."""
        return any(one.relayed for one in self.visitors)

    def unsettled(self, run_no: int) -> tuple[bool, bool]:
        """Return whether anything of the run may be on its way, and whether some of that waits in a socket."""
        visitors = [one for one in self.visitors if self.matters(one.link, run_no)]
        waiting = any(one.has_unread() for one in visitors)
        return waiting or any(one.halfway for one in visitors), waiting


def unread(socket: Any) -> bool:
    """Return whether a socket has bytes, an end or a new connection to be read."""
    if socket is None or (descriptor := socket.fileno()) < 0:
        return False
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))

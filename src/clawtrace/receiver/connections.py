"""Which connections carried spans of which run, and a way to wait until that changes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["Changes", "Connection", "Connections"]

_PEER_LIMIT = 4_096
_JOINED_LIMIT = 100_000


class Changes:
    """A counter that grows when something happened that a waiting run may care about."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._version = 0

    @property
    def version(self) -> int:
        """Take this before looking at anything; `wait` then misses nothing."""
        with self._condition:
            return self._version

    def tell(self) -> None:
        """Something happened."""
        with self._condition:
            self._version += 1
            self._condition.notify_all()

    def wait(self, version: int, seconds: float) -> None:
        """Wait until something happens after `version`, at most `seconds`."""
        with self._condition:
            self._condition.wait_for(lambda: self._version != version, max(seconds, 0))


@dataclass(slots=True, eq=False)
class Connection:
    """One connection of an exporter."""

    number: int
    peer: str
    """``ipv4:127.0.0.1:54321`` as gRPC writes it."""
    runs: set[int] = field(default_factory=set)
    """Runs that it carried spans or log records of."""

    @property
    def port(self) -> int:
        """The peer's port; 0 where it has none."""
        digits = self.peer.rpartition(":")[2]
        return int(digits) if digits.isdigit() else 0


class Connections:
    """All open connections; gRPC's are kept until the kernel no longer knows them."""

    def __init__(self, changes: Changes) -> None:
        self._lock = threading.Lock()
        self._changes = changes
        self._numbers = itertools.count(1)
        self._open: set[Connection] = set()
        self._peers: dict[str, Connection] = {}
        self._joined: dict[int, int] = {}
        """Run of a trace that stood for itself → the run that it has turned out to be of."""

    def opened(self, peer: str) -> Connection:
        """Note an HTTP connection."""
        with self._lock:
            connection = Connection(next(self._numbers), peer)
            self._open.add(connection)
        return connection

    def closed(self, connection: Connection) -> None:
        """Note that an HTTP connection has ended."""
        with self._lock:
            self._open.discard(connection)
        self._changes.tell()

    def grpc(self, peer: str) -> Connection:
        """Return the gRPC connection of `peer`, noting it when it is new."""
        with self._lock:
            connection = self._peers.get(peer)
            if connection is None:
                if len(self._peers) >= _PEER_LIMIT:
                    del self._peers[next(iter(self._peers))]
                connection = self._peers[peer] = Connection(next(self._numbers), peer)
            return connection

    def grpc_gone(self, ports: set[int]) -> None:
        """Forget gRPC connections whose peer port is not among `ports`, the open ones."""
        with self._lock:
            self._peers = {peer: one for peer, one in self._peers.items() if one.port in ports}

    def carried(self, connection: Connection, runs: Iterable[int]) -> None:
        """Note that a connection carried something of `runs`."""
        with self._lock:
            for run_no in runs:
                connection.runs.add(run_no)
                if run_no in self._joined:
                    connection.runs.add(self._joined[run_no])

    def joined(self, alone: int, run_no: int) -> None:
        """Note that what was the run `alone`, a trace that stood for itself, is of the run `run_no`."""
        with self._lock:
            if len(self._joined) >= _JOINED_LIMIT:
                del self._joined[next(iter(self._joined))]
            self._joined[alone] = run_no
            for connection in (*self._open, *self._peers.values()):
                if alone in connection.runs:
                    connection.runs.add(run_no)

    def of_run(self, run_no: int) -> tuple[bool, bool]:
        """Say whether an HTTP and whether a gRPC connection that carried something of the run is open."""
        with self._lock:
            http = any(run_no in one.runs for one in self._open)
            grpc = any(run_no in one.runs for one in self._peers.values())
        return http, grpc

    def runs_of(self, connection: Connection) -> set[int]:
        """Return the runs that a connection carried something of, so far."""
        with self._lock:
            return set(connection.runs)

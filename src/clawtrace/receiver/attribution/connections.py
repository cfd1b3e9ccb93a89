"""State of runs while they are received: the connections that carried their spans, a way to wait for changes, and counts.

A "no trace" message is written from the counts.
"""

from __future__ import annotations

import copy
import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from clawtrace.model.raw import Receipt
from clawtrace.receiver.attribution.attribute import NO_RUN

__all__ = ["Changes", "Connection", "Connections", "Counters", "Note", "Tally"]

_JOINED_LIMIT = 100_000
_IDLE_SECONDS = 60.0
"""Seconds without data after which a client may have closed its connection (Go's HTTP client: 90 s)."""
_PROMPT_SECONDS = 0.2
"""What opens a connection for each request (curl, many proxies) closes it as soon as it has its answer."""


class Changes:
    """A counter that grows with each event that a waiting run may depend on."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._version = 0

    @property
    def version(self) -> int:
        """Read this before checking any state; `wait` then misses no event."""
        with self._condition:
            return self._version

    def tell(self) -> None:
        """Count an event and wake those who wait."""
        with self._condition:
            self._version += 1
            self._condition.notify_all()

    def wait(self, version: int, seconds: float) -> None:
        """Wait until something happens after `version`, at most `seconds`."""
        with self._condition:
            self._condition.wait_for(lambda: self._version != version, max(seconds, 0))


@dataclass(slots=True, eq=False)
class Connection:
    """One connection of an exporter, whichever protocol it speaks."""

    port: int
    """Which of our ports it came to."""
    runs: set[int] = field(default_factory=set)
    """Runs whose spans or log records it carried."""
    order: int = 0
    """Its position in the sequence of opened connections and announced runs."""
    passes_on: bool = False
    """Whether a Collector or a proxy holds it, as a rule (`Request.passed_on`)."""
    last: float = -math.inf
    """Time of its last request, in seconds of the monotonic clock."""
    requests: int = 0
    """The number of requests it carried."""
    by_collector: bool = False
    """Whether a Collector holds it, as its requests say: that keeps its connections open."""


class Connections:
    """All open connections of exporters."""

    def __init__(self, changes: Changes) -> None:
        self._lock = threading.Lock()
        self._changes = changes
        self._open: set[Connection] = set()
        self._relayed: dict[int, Connection] = {}
        """By the port that the gRPC server sees its bytes come from; ended ones stay until the port is used again, because
        their last calls may be handed out later."""
        self._order = itertools.count()
        self._announced: dict[int, int] = {}
        """Position of each run's announcement in the sequence of connections."""
        self._forwarded: set[int] = set()
        self._forwarder_ended = -1
        """Place at which the last connection of a Collector ended that had just been in use."""
        self._joined: dict[int, int] = {}
        """Run of a trace that stood for itself → the run that it has turned out to be of."""

    def opened(self, port: int) -> Connection:
        """Register a connection to our `port`."""
        with self._lock:
            connection = Connection(port, order=next(self._order))
            self._open.add(connection)
        return connection

    def closed(self, connection: Connection) -> None:
        """Record that a connection has ended and that everything it sent was read."""
        with self._lock:
            self._open.discard(connection)
            idle = time.monotonic() - connection.last
            for_one_request = connection.requests == 1 and idle < _PROMPT_SECONDS and not connection.by_collector
            in_use = idle < _IDLE_SECONDS and not for_one_request
            if connection.passes_on and in_use and not any(one.passes_on for one in self._open):
                self._forwarder_ended = next(self._order)
        self._changes.tell()

    def relayed(self, connection: Connection, port: int) -> None:
        """Record the local `port` from which the gRPC server receives the bytes of a connection."""
        with self._lock:
            self._relayed[port] = connection

    @property
    def any_relayed(self) -> bool:
        """Whether a connection ever spoke gRPC."""
        return bool(self._relayed)

    def of_call(self, peer: str) -> Connection | None:
        """Return the connection of a gRPC call whose bytes came from `peer`, None where it did not come through our ports."""
        port = peer.rpartition(":")[2]
        with self._lock:
            return self._relayed.get(int(port)) if port.isdigit() else None

    def announced(self, run_no: int) -> None:
        """Record the start of a run: its processes hold no connection opened earlier."""
        with self._lock:
            self._announced.setdefault(run_no, next(self._order))

    def carried(
        self, connection: Connection, runs: Iterable[int], *, passed_on: bool = False, by_collector: bool = False
    ) -> None:
        """Record that a connection carried items of `runs`, and whether through a Collector or a proxy."""
        with self._lock:
            connection.passes_on |= passed_on
            connection.by_collector |= by_collector
            connection.last = time.monotonic()
            connection.requests += 1
            for run_no in runs:
                connection.runs.add(run_no)
                if run_no in self._joined:
                    connection.runs.add(self._joined[run_no])
            self._note_forwarded(connection)

    def joined(self, alone: int, run_no: int) -> None:
        """Note that what was the run `alone`, a trace that stood for itself, is of the run `run_no`."""
        with self._lock:
            if len(self._joined) >= _JOINED_LIMIT:
                del self._joined[next(iter(self._joined))]
            self._joined[alone] = run_no
            for connection in self._open:
                if alone in connection.runs:
                    connection.runs.add(run_no)
                    self._note_forwarded(connection)

    def forwarded(self, run_no: int) -> bool:
        """Return whether a connection that the run's own processes cannot hold carried something of it.

        It was opened before the run was announced, or carried another announced run, too.
        """
        with self._lock:
            return run_no in self._forwarded

    def forwarder_ended(self, run_no: int) -> bool:
        """Return whether, since a run was announced, every Collector that had just passed something on has closed its connections."""
        with self._lock:
            return self._announced.get(run_no, math.inf) < self._forwarder_ended

    def _note_forwarded(self, connection: Connection) -> None:
        """Record the announced runs of a connection that carried several, or that was opened before the run; the lock is held."""
        begun = [(run_no, self._announced[run_no]) for run_no in connection.runs if run_no in self._announced]
        self._forwarded.update(run_no for run_no, order in begun if len(begun) > 1 or connection.order < order)

    def carry(self, run_no: int) -> bool:
        """Return whether a connection that carried something of the run is open."""
        with self._lock:
            return any(run_no in one.runs for one in self._open)

    def runs_of(self, connection: Connection) -> set[int]:
        """Return the runs whose items a connection has carried so far."""
        with self._lock:
            return set(connection.runs)


_REASONS_LIMIT = 200


class Note(NamedTuple):
    """The receipt of a request for one run, with further facts to count."""

    receipt: Receipt
    port: int
    """Which of our ports it came through."""
    unattributed: bool = False
    """Whether its items are attributed to no run, only to their trace."""
    foreign: bool = False
    """Whether an item of it came without the run's own environment (`clawtrace.model.run.CARRIED`)."""
    unnamed: bool = False
    """Whether the request named no run in its header or path, and no SDK's own exporter sent it."""


@dataclass(slots=True)
class Tally:
    """Counts of one run, or of all. Items are spans, log records and metric data points."""

    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0
    """Items that will never be accepted."""
    refused: int = 0
    """Items (requests, if unreadable) that were refused under load or by a failed commit."""
    unattributed: int = 0
    """Accepted items that no rule gave to a run."""
    foreign: int = 0
    """Items not attributed by the run's own environment: usually of an agent that already ran."""
    unnamed: int = 0
    """Items of requests without a run in header or path that no SDK's exporter sent: usually forwarded."""
    channels: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Accepted items by (protocol, signal, port)."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Reasons why items or requests were rejected or refused, with their numbers."""
    last_arrival_ns: int | None = None
    """Unix time of the last request that brought spans or log records; None when none did."""
    last_request_no: int = 0
    """Number of the last request that brought spans or log records that were not there before."""
    last_counted: float | None = None
    """When the last request that brought any, new or not, was counted, which is once it was committed, in seconds of the monotonic
    clock: waiting is measured by it, since the other clock may be set."""


def _reason(tally: Tally, reason: str, count: int) -> None:
    """Count a reason; reasons contain text of the sender, so their number is bounded."""
    known = reason in tally.reasons or len(tally.reasons) < _REASONS_LIMIT
    tally.reasons[reason if known else "other reasons"] += count


class Counters:
    """Counts by run number; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = Tally()
        self._runs: dict[int, Tally] = {}
        self._strays = Tally()
        """Requests without a run that are in no receipt yet."""

    def add(self, note: Note) -> None:
        """Count one receipt; items without a run count in the total only."""
        receipt = note.receipt
        now = time.monotonic()
        with self._lock:
            tallies = [self._total]
            if not note.unattributed:
                tallies.append(self._runs.setdefault(receipt.run_no, Tally()))
            for tally in tallies:
                tally.accepted += receipt.accepted
                tally.duplicates += receipt.duplicates
                tally.rejected += receipt.rejected
                tally.refused += receipt.refused
                tally.unattributed += receipt.accepted if note.unattributed else 0
                tally.foreign += receipt.accepted + receipt.duplicates if note.foreign else 0
                tally.unnamed += receipt.accepted + receipt.duplicates if note.unnamed else 0
                if receipt.accepted:
                    tally.channels[receipt.protocol, receipt.signal, note.port] += receipt.accepted
                if receipt.reason:
                    _reason(tally, receipt.reason, receipt.rejected + receipt.refused)
                if receipt.signal != "metrics" and (receipt.accepted or receipt.duplicates):
                    tally.last_arrival_ns = max(tally.last_arrival_ns or 0, receipt.arrival_ns)
                    tally.last_counted = now
                    if receipt.accepted:
                        tally.last_request_no = max(tally.last_request_no, receipt.request_no)

    def turned_away(self, reason: str) -> None:
        """Count a request without a run (wrong path, wrong port, no token)."""
        with self._lock:
            _reason(self._total, reason, 1)
            _reason(self._strays, reason, 1)

    def take_strays(self) -> list[Receipt]:
        """Return receipts of the requests that were turned away since the last call: what a run without a trace may lack."""
        with self._lock:
            strays, self._strays = self._strays, Tally()
        now = time.time_ns()
        return [Receipt(NO_RUN, 0, now, "", "", refused=count, reason=why) for why, count in strays.reasons.items()]

    def forget(self, run_nos: Iterable[int]) -> None:
        """Drop the counts of deleted runs; the total keeps them."""
        with self._lock:
            for run_no in run_nos:
                self._runs.pop(run_no, None)

    def of_run(self, run_no: int) -> Tally:
        """Return a copy of the counts of a run."""
        with self._lock:
            return copy.deepcopy(self._runs.get(run_no, Tally()))

    def total(self) -> Tally:
        """Return a copy of the counts of everything."""
        with self._lock:
            return copy.deepcopy(self._total)

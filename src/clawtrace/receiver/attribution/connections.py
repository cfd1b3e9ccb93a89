"""What is known of runs while they are received: the connections that carried their spans, a way to wait until that changes, and counts.

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
"""A connection over which nothing came for so long may have been closed for that (Go's HTTP client: after 90 s)."""
_PROMPT_SECONDS = 0.2
"""What opens a connection for each request (curl, many proxies) closes it as soon as it has its answer."""


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
    """One connection of an exporter, whichever protocol it speaks."""

    port: int
    """Which of our ports it came to."""
    runs: set[int] = field(default_factory=set)
    """Runs that it carried spans or log records of."""
    order: int = 0
    """Its place among the connections that were opened and the runs that were announced."""
    passes_on: bool = False
    """Whether a Collector or a proxy holds it, as a rule (`Request.passed_on`)."""
    last: float = -math.inf
    """When it last carried something, in seconds of the monotonic clock."""
    requests: int = 0
    """How many requests it carried."""
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
        """Place of the announcement of a run among the connections."""
        self._forwarded: set[int] = set()
        self._forwarder_ended = -1
        """Place at which the last connection of a Collector ended that had just been in use."""
        self._joined: dict[int, int] = {}
        """Run of a trace that stood for itself → the run that it has turned out to be of."""

    def opened(self, port: int) -> Connection:
        """Note a connection to our `port`."""
        with self._lock:
            connection = Connection(port, order=next(self._order))
            self._open.add(connection)
        return connection

    def closed(self, connection: Connection) -> None:
        """Note that a connection has ended and that everything it sent was read."""
        with self._lock:
            self._open.discard(connection)
            idle = time.monotonic() - connection.last
            for_one_request = connection.requests == 1 and idle < _PROMPT_SECONDS and not connection.by_collector
            in_use = idle < _IDLE_SECONDS and not for_one_request
            if connection.passes_on and in_use and not any(one.passes_on for one in self._open):
                self._forwarder_ended = next(self._order)
        self._changes.tell()

    def relayed(self, connection: Connection, port: int) -> None:
        """Note that the gRPC server sees the bytes of a connection come from the local `port`."""
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
        """Note that a run begins: its processes can hold no connection that was opened before."""
        with self._lock:
            self._announced.setdefault(run_no, next(self._order))

    def carried(
        self, connection: Connection, runs: Iterable[int], *, passed_on: bool = False, by_collector: bool = False
    ) -> None:
        """Note that a connection carried something of `runs`, and whether something stood between, a Collector or a proxy."""
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
        """Say whether a connection that the run's own processes cannot hold carried something of it.

        It was opened before the run was announced, or carried another announced run, too.
        """
        with self._lock:
            return run_no in self._forwarded

    def forwarder_ended(self, run_no: int) -> bool:
        """Say whether, since a run was announced, every Collector that had just passed something on has closed its connections."""
        with self._lock:
            return self._announced.get(run_no, math.inf) < self._forwarder_ended

    def _note_forwarded(self, connection: Connection) -> None:
        """Note the announced runs of a connection that are not the only one, or began later; the lock is held."""
        begun = [(run_no, self._announced[run_no]) for run_no in connection.runs if run_no in self._announced]
        self._forwarded.update(run_no for run_no, order in begun if len(begun) > 1 or connection.order < order)

    def carry(self, run_no: int) -> bool:
        """Say whether a connection that carried something of the run is open."""
        with self._lock:
            return any(run_no in one.runs for one in self._open)

    def runs_of(self, connection: Connection) -> set[int]:
        """Return the runs that a connection carried something of, so far."""
        with self._lock:
            return set(connection.runs)


_REASONS_LIMIT = 200


class Note(NamedTuple):
    """A receipt, which says what a request did for one run, and what else is counted."""

    receipt: Receipt
    port: int
    """Which of our ports it came through."""
    unattributed: bool = False
    """Whether its items belong to no run but their own trace."""
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
    """Items (requests, where nothing could be read) that were turned away under pressure or by a failed commit."""
    unattributed: int = 0
    """Accepted items that no rule gave to a run."""
    foreign: int = 0
    """Items that no rule of the run's own environment gave to it: of an agent that already ran, as a rule."""
    unnamed: int = 0
    """Items of requests whose header and path named no run, and that no SDK's own exporter sent: passed on, as a rule."""
    channels: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """Accepted items by (protocol, signal, port)."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why items or requests were rejected, refused or turned away, with how many."""
    last_arrival_ns: int | None = None
    """Unix time of the last request that brought spans or log records; None when none did."""
    last_request_no: int = 0
    """Number of the last request that brought spans or log records that were not there before."""
    last_counted: float | None = None
    """When the last request that brought any, new or not, was counted, which is once it was committed, in seconds of the monotonic
    clock: waiting is measured by it, since the other clock may be set."""


def _reason(tally: Tally, reason: str, count: int) -> None:
    """Count a reason; reasons hold words of the sender, so their number is bounded."""
    known = reason in tally.reasons or len(tally.reasons) < _REASONS_LIMIT
    tally.reasons[reason if known else "other reasons"] += count


class Counters:
    """Counts by run number; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = Tally()
        self._runs: dict[int, Tally] = {}
        self._strays = Tally()
        """Requests of no run that are in no receipt yet."""

    def add(self, note: Note) -> None:
        """Count one receipt; items of a run that is but their own trace count in the total only."""
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
        """Count a request that no run can be named for (wrong path, wrong port, no token)."""
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
        """Drop the counts of runs that are no more; the total keeps them."""
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

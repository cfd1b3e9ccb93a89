"""What the receiver counted, per run and in total: a "no trace" message is written from it."""

from __future__ import annotations

import copy
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from clawtrace.model.raw import Receipt
from clawtrace.receiver.attribution.attribute import NO_RUN

__all__ = ["Counters", "Tally"]

_REASONS_LIMIT = 200


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

    def add(
        self, receipt: Receipt, port: int, unattributed: bool, foreign: bool = False, unnamed: bool = False
    ) -> None:
        """Count one receipt.

        Args:
            receipt: what a request did for one run.
            port: which of our ports it came through.
            unattributed: whether its items belong to no run but their own trace (counted in the total only).
            foreign: whether an item of it came without the run's own environment.
            unnamed: whether the request named no run in header or path, and no SDK's own exporter sent it.
        """
        now = time.monotonic()
        with self._lock:
            tallies = [self._total]
            if not unattributed:
                tallies.append(self._runs.setdefault(receipt.run_no, Tally()))
            for tally in tallies:
                tally.accepted += receipt.accepted
                tally.duplicates += receipt.duplicates
                tally.rejected += receipt.rejected
                tally.refused += receipt.refused
                tally.unattributed += receipt.accepted if unattributed else 0
                tally.foreign += receipt.accepted + receipt.duplicates if foreign else 0
                tally.unnamed += receipt.accepted + receipt.duplicates if unnamed else 0
                if receipt.accepted:
                    tally.channels[receipt.protocol, receipt.signal, port] += receipt.accepted
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

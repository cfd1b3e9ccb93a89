"""What both servers share: who may send, what fits, what is recorded when a request is turned away."""

from __future__ import annotations

import hmac
import threading
import time

from clawtrace.errors import StoreError
from clawtrace.model.raw import Receipt
from clawtrace.receiver.attribution.attribute import NO_RUN, Attribution
from clawtrace.receiver.attribution.connections import Connections
from clawtrace.receiver.attribution.counters import Counters
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.receiver.request import Request
from clawtrace.receiver.writer import Writer

__all__ = ["NO_TOKEN", "PRESSURE", "STOPPING", "Desk"]

PRESSURE = "the receiver's queue is full; try again"
STOPPING = "the receiver is stopping"
NO_TOKEN = "a token is required: send `authorization: Bearer TOKEN` or `x-clawtrace-token: TOKEN`"


class Desk:
    """The front desk of the receiver; safe to use from several threads."""

    def __init__(
        self,
        settings: ReceiverSettings,
        writer: Writer,
        attribution: Attribution,
        connections: Connections,
        counters: Counters,
    ) -> None:
        self.settings = settings
        self.writer = writer
        self.connections = connections
        self.counters = counters
        self._attribution = attribution
        self._lock = threading.Lock()
        self._open_runs: set[int] = set()
        self.producers = dict(settings.producers)
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
        """Say whether a request may come in, by its two headers (empty when absent)."""
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

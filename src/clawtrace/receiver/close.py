"""When a run is closed: nothing more can come (spec: span-model.md §3, the waiting half).

(a) the processes have exited and no connection that carried the run's spans is open, (b) somebody said so,
(c) nothing arrived for `settle_ms` after the last arrival and after the command's end, at most `trace_timeout_ms`.
Waiting is for events: commits and connections that end.
"""

from __future__ import annotations

import time

from clawtrace.model.run import ClosedBy
from clawtrace.receiver.receiver import Receiver

__all__ = ["wait_closed"]

_REST_SECONDS = 0.5
"""Shortest time given to what is half-way in, also when everything else has run out: a busy machine is no reason to
say that spans were still arriving."""


def wait_closed(
    receiver: Receiver,
    run_id: str,
    *,
    processes_gone: bool,
    ended: float | None = None,
    end_run: bool = False,
    settle_ms: int = 2_000,
    trace_timeout_ms: int = 60_000,
) -> ClosedBy:
    """Wait until a run is closed and say why it is; everything received of it is then committed.

    Args:
        receiver: the receiver that the run's exporters were pointed at.
        run_id: the run.
        processes_gone: whether every process that the runner started has exited, descendants included.
        ended: when the command ended, in seconds of the monotonic clock, which nobody sets; now when None.
        end_run: whether the run was ended explicitly.
        settle_ms: how long nothing may arrive, where exit cannot close the run.
        trace_timeout_ms: longest wait after the command's end.
    """
    try:
        if end_run:
            receiver.flush()
            return ClosedBy.END_RUN
        return _Wait(receiver, run_id, processes_gone, ended, settle_ms, trace_timeout_ms).wait()
    finally:
        receiver.close_run(run_id)


class _Wait:
    """One wait; all times on the monotonic clock."""

    def __init__(
        self,
        receiver: Receiver,
        run_id: str,
        processes_gone: bool,
        ended: float | None,
        settle_ms: int,
        trace_timeout_ms: int,
    ) -> None:
        self._receiver = receiver
        self._run_id = run_id
        self._gone = processes_gone
        self._ended = time.monotonic() if ended is None else ended
        self._settle = settle_ms / 1_000
        self._limit = self._ended + trace_timeout_ms / 1_000

    def wait(self) -> ClosedBy:
        """Wait and say what closed the run."""
        while True:
            version = self._receiver.changes.version
            seconds = min(self._settled_at(), self._limit) - time.monotonic()
            rested = self._receiver.rest(self._run_id, max(seconds, _REST_SECONDS))
            if rested and self._gone and not self._receiver.is_carried(self._run_id):
                return ClosedBy.EXIT
            now = time.monotonic()
            if rested and now >= self._settled_at():
                return ClosedBy.SETTLED
            if now >= self._limit:
                return ClosedBy.TIMEOUT
            self._receiver.changes.wait(version, min(self._settled_at(), self._limit) - now)

    def _settled_at(self) -> float:
        """Return when nothing will have arrived for long enough."""
        counted = self._receiver.counters(self._run_id).last_counted
        return (self._ended if counted is None else max(self._ended, counted)) + self._settle

"""When a run is closed: no more spans can arrive (spec: span-model.md §3, the waiting half).

(a) the processes have exited and no connection that carried the run's spans is open, (b) the end was stated explicitly,
(c) nothing arrived for `settle_ms` after the last arrival and after the command's end, at most `trace_timeout_ms`.
Where the agent already ran, its exit is none of the command's: every turn's entry span closes the run, else (c).
Where others than the run's processes export for it, such as a Collector, exit says nothing of what they hold: (c) alone closes it.
Waiting is for events: commits and connections that end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from clawtrace.model.run import ClosedBy
from clawtrace.receiver.attribution.connections import Tally
from clawtrace.receiver.receiver import Receiver

__all__ = ["Outlook", "Waiting", "wait_closed"]

_REST_SECONDS = 0.5
"""Shortest time given to what is half-way in, also when everything else has run out: a busy machine is no reason to
say that spans were still arriving."""
_SAY_SECONDS = 1.0
"""Waits that may take longer, in seconds, are reported."""

Waiting = Callable[[str, float], None]
"""Called with what is waited for, and for how many seconds nothing may arrive until then; again when that changes."""


class Outlook(NamedTuple):
    """What the spans received so far tell about the end of a run."""

    exit_closes: bool
    """Whether nothing more can arrive after the runner's processes have exited."""
    settle_ms: int
    """Milliseconds without data after which the run is closed."""
    whole: bool = False
    """The agent already ran, and every turn's entry span is here."""
    awaited: str = "the spans of processes that may still run"
    """What the wait is for, in words."""


def wait_closed(
    receiver: Receiver,
    run_id: str,
    *,
    processes_gone: bool,
    ended: float | None = None,
    end_run: bool = False,
    settle_ms: int = 2_000,
    trace_timeout_ms: int = 60_000,
    outlook: Callable[[Tally], Outlook] | None = None,
    waiting: Waiting | None = None,
) -> ClosedBy:
    """Wait until a run is closed and say why it is; everything received of it is then committed.

    Args:
        receiver: the receiver that the run's exporters were pointed at.
        processes_gone: whether every process that the runner started has exited, descendants included.
        ended: when the command ended, in seconds of the monotonic clock, which cannot be set; now when None.
        end_run: whether the run was ended explicitly.
        settle_ms: how long nothing may arrive, where exit cannot close the run and `outlook` is not given.
        trace_timeout_ms: longest wait after the command's end.
        outlook: says from what was counted of the run what its end will be; by default exit closes it.
        waiting: called for a wait that may take a while.
    """
    try:
        if end_run:
            receiver.flush()
            return ClosedBy.END_RUN
        began = time.monotonic() if ended is None else ended
        timeout = trace_timeout_ms / 1_000
        rest_until, said = began + timeout, ""
        while True:
            version = receiver.changes.version
            rested = receiver.rest(run_id, max(rest_until - time.monotonic(), _REST_SECONDS))
            tally = receiver.counters(run_id)
            look = outlook(tally) if outlook else Outlook(exit_closes=True, settle_ms=settle_ms)
            last = began if tally.last_counted is None else max(began, tally.last_counted)
            settled_at = last + look.settle_ms / 1_000
            limit = began + max(timeout, look.settle_ms / 1_000)
            if rested and processes_gone and look.exit_closes and not receiver.is_carried(run_id):
                return ClosedBy.EXIT
            if rested and processes_gone and look.whole:
                return ClosedBy.EVIDENCE
            now = time.monotonic()
            if rested and now >= settled_at:
                return ClosedBy.SETTLED
            if now >= limit:
                return ClosedBy.TIMEOUT
            rest_until = min(settled_at, limit)
            if waiting and rest_until - now >= _SAY_SECONDS and look.awaited != said:
                said = look.awaited
                waiting(said, rest_until - now)
            receiver.changes.wait(version, rest_until - now)
    finally:
        receiver.close_run(run_id)

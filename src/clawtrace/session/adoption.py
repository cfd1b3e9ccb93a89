"""Giving traces that named no run to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clawtrace.errors import StoreError, UsageError
from clawtrace.model.raw import LogBatch, SpanBatch
from clawtrace.model.run import RunRule
from clawtrace.support.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from clawtrace.receiver.receiver import Receiver
    from clawtrace.store.duckdb import DuckStore

__all__ = ["adopt_traces"]


def adopt_traces(store: DuckStore, run_id: str, trace_ids: Sequence[str], receiver: Receiver | None = None) -> None:
    """Give unattributed traces to a run; what a span said of its run is never overruled.

    Args:
        trace_ids: all of them are adopted, or none.
        receiver: writes to the store, and gives what comes of these traces later to the run, too.

    Raises:
        UsageError: a trace is not unattributed; the message names the nearest that is.
        StoreError: it could not be written.
    """
    with store.lock:
        strays = _strays(store)
        for trace_id in trace_ids:
            if trace_id not in strays:
                hint = did_you_mean(trace_id, strays) or f"The store has {len(strays)} of them."
                raise UsageError(f"There is no unattributed trace {trace_id!r}. {hint}")
        if receiver is None:
            number = store.run_no(run_id)
            store.commit(SpanBatch(), LogBatch(), [], [(one, number, RunRule.GIVEN.value) for one in trace_ids])
            return
    receiver.adopt(run_id, trace_ids)
    if left := _strays(store).intersection(trace_ids):
        raise StoreError(f"traces could not be adopted: {', '.join(sorted(left))}")


def _strays(store: DuckStore) -> set[str]:
    return {trace for trace, _, rule in store.known_runs()[1] if rule == RunRule.NONE}

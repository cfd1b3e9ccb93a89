"""The contents of a session's store: loading recordings, logs and runs, deleting runs, and attributing traces to a run."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.errors import InputError, StoreError, UsageError
from clawtrace.model.raw import LogBatch, SpanBatch
from clawtrace.model.run import ClosedBy, RunRecord, RunRule
from clawtrace.session.questions import SessionQuestions
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.whole_runs import forget_runs, opened, packed_run, received_rows, take_run
from clawtrace.support.did_you_mean import did_you_mean
from clawtrace.support.memory import give_back

if TYPE_CHECKING:
    from clawtrace.facts.logs.importing import LoadedLogs, RunOf
    from clawtrace.receiver.receiver import Receiver
    from clawtrace.receiver.recordings.recording import Grouping, LoadReport
    from clawtrace.store.retention import Keep, Surplus

__all__ = ["SessionContents", "adopt_traces"]

_MANY_SPANS = 10_000
"""Of a recording of more, what reading it took is given back."""


class SessionContents(SessionQuestions):
    """Operations that change the contents of one store; see `clawtrace.session.session`."""

    def __init__(self, store: DuckStore, settings: SessionSettings) -> None:
        super().__init__(store, settings)
        self._receiver: Receiver | None = None

    def load_recordings(self, paths: Sequence[Path], grouping: Grouping) -> LoadReport:
        """Store recorded OTLP and close the runs it makes: a recording is whole by itself.

        Raises:
            InputError: a file cannot be read as OTLP; the message names file and line.
        """
        from clawtrace.receiver.recordings.recording import load_recordings
        from clawtrace.store.export import read_parquet

        report = load_recordings(
            paths, grouping, self._store, redaction=self.settings.redaction, run_key=self.settings.run_key,
            parquet=read_parquet, progress=self.progress,
        )  # fmt: skip
        if report.spans > _MANY_SPANS:
            give_back()
        for run_id in report.run_ids:
            known = self._store.record(run_id) or RunRecord(run_id, run_id)
            self._store.put_record(known._replace(closed_by=ClosedBy.RECORDING))
        return report

    def load_logs(self, paths: Sequence[Path], run_of: RunOf, *, must_be_logs: bool = True) -> LoadedLogs:
        """Read agents' own logs and transcripts: more of runs that are there, or runs (`facts.logs.importing.load_logs`).

        Raises:
            InputError: a file cannot be read, or is of no form that is known.
        """
        from clawtrace.facts.logs.importing import load_logs

        adapters, redaction = self.settings.log_adapters, self.settings.redaction
        with self._store.lock:
            return load_logs(
                self._store, paths, adapters, redaction, run_of=run_of, ensure=self._current, must_be_logs=must_be_logs
            )

    def take_run(self, store: Path, run_id: str, renamed: RunRecord | None = None) -> RunRecord | None:
        """Copy a run from another store, which no other process may hold (see `clawtrace.store.whole_runs.take_run`)."""
        with self._store.lock:
            return take_run(self._store, store, run_id, renamed)

    def packed_run(self, run_id: str) -> bytes:
        """Return a run as the file of a store of its own (see `clawtrace.store.whole_runs.packed_run`)."""
        with self._store.lock:
            return packed_run(self._store, run_id)

    def received_rows(self, run_ids: Sequence[str]) -> dict[str, int]:
        """Return how many rows of each run came over the wire (see `clawtrace.store.whole_runs.received_rows`)."""
        with self._store.lock:
            return received_rows(self._store, run_ids)

    def runs_to_take(self, store: Path) -> list[str] | None:
        """Return the runs of another store; None where it cannot be opened, such as while another process holds it."""
        with self._store.lock:
            try:
                with opened(store) as source:
                    return source.run_ids()
            except InputError:
                return None

    def delete_runs(self, run_ids: Collection[str], why: str, *, strays_before_ns: int = 0) -> None:
        """Delete runs from the store, which may receive meanwhile: items of them that arrive later are rejected.

        Args:
            run_ids: which ones; those that it does not have are passed over.
            why: what is said of them when they are asked for.
            strays_before_ns: what belongs to no run and came before this Unix time goes, too.

        Raises:
            StoreError: they could not be taken out; they are still there.
        """
        known = set(self.run_ids())
        gone = {run_id: self._store.run_no(run_id) for run_id in run_ids if run_id in known}
        receiver = self._receiver
        with self._store.lock:
            if receiver is not None:
                receiver.forget(gone)
            deleted = False
            try:
                forget_runs(self._store, gone, why, strays_before_ns=strays_before_ns)
                deleted = True
            finally:
                if receiver is not None:
                    receiver.forgotten(gone, deleted=deleted)
            self._store.checkpoint(whole=True)

    def adopt(self, run_id: str, trace_ids: Sequence[str]) -> None:
        """Attribute traces without a run to this run (see `clawtrace.session.adoption.adopt_traces`)."""
        adopt_traces(self._store, run_id, trace_ids, self._receiver)

    def surplus(self, keep: Keep) -> list[Surplus]:
        """Return the runs that are more than the store may hold, the oldest first."""
        from clawtrace.store.retention import surplus

        with self._store.lock:
            return surplus(self._store, keep, time.time_ns())

    def file_bytes(self) -> int:
        """Return the size of the store's files."""
        return sum(path.stat().st_size for path in map(Path, self._store.files()) if path.exists())

    def forget_runs(self, run_ids: Collection[str]) -> None:
        """Delete runs from the store without a record of them; only while nothing is received.

        Raises:
            StoreError: they could not be taken out.
        """
        with self._store.lock:
            forget_runs(self._store, run_ids)


def adopt_traces(store: DuckStore, run_id: str, trace_ids: Sequence[str], receiver: Receiver | None = None) -> None:
    """Attribute traces without a run to this run; a run named by a span is never overruled.

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

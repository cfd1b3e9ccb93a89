"""A session on traces that live in ClickHouse, where the OpenTelemetry Collector wrote them.

The rows of the chosen runs are read once and go the way of a recording, into a store in memory: redacted, given to their
runs, turned into relations. The relations go back to the server, where every question is asked, with the texts that DuckDB
is asked. So there is one way from spans to facts, and one from facts to verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.facts.scopes.scoped_facts import ScopedFacts
from clawtrace.facts.scopes.scopes import Scope
from clawtrace.model.progress import Progress, unseen
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.model.verdict import RunResult
from clawtrace.receiver.attribution.attribute import RUN_ID
from clawtrace.receiver.request import Signal
from clawtrace.session.questions import _Engine
from clawtrace.session.session import Session
from clawtrace.store.clickhouse.address import ClickHouseAddress
from clawtrace.store.clickhouse.connection import ServerError, ServerSession
from clawtrace.store.clickhouse.own_tables import publish
from clawtrace.store.clickhouse.picking import EVERYTHING, Picked, Selection, pick
from clawtrace.store.clickhouse.raw_rows import forget_unknown, requests
from clawtrace.store.clickhouse.relations import ClickHouseRelations
from clawtrace.store.duckdb import DuckStore
from clawtrace.support.memory import collector_paused

if TYPE_CHECKING:
    from clawtrace.receiver.recordings.recording import LoadReport

__all__ = ["ClickHouseSession"]

_SETTLE_MS = 60_000
"""Silence that closes a run, unless the project says otherwise: a Collector may hold spans back for some of it."""

_LAST = """
SELECT n.run_id, max(t.last_ns) FROM (
    SELECT run_no, greatest(start_ns, CASE WHEN end_ns < 9223372036854775807 THEN end_ns ELSE 0 END) AS last_ns FROM otel_traces
    UNION ALL SELECT run_no, time_ns FROM otel_logs
) AS t JOIN run_numbers AS n ON n.run_no = t.run_no GROUP BY n.run_id
"""

_OF_TRACES = """
SELECT DISTINCT n.run_id, t."TraceId" FROM (
    SELECT DISTINCT run_no, "TraceId" FROM otel_traces UNION ALL SELECT DISTINCT run_no, "TraceId" FROM otel_logs
) AS t JOIN run_numbers AS n ON n.run_no = t.run_no
"""


class ClickHouseSession(Session):
    """Judges what the Collector's tables hold of the chosen runs at one moment."""

    def __init__(self, connection: ServerSession, settings: SessionSettings) -> None:
        """Use `open_at`."""
        super().__init__(DuckStore(), settings)
        self.connection = connection
        self._there = self._asked = ClickHouseRelations(connection, self._store)
        self._run_ids: list[str] = []
        self.notes: list[str] = []
        """Notes from reading the tables, one sentence each."""

    @classmethod
    def open_at(
        cls,
        address: ClickHouseAddress,
        selection: Selection = EVERYTHING,
        *,
        settings: SessionSettings | None = None,
        progress: Progress = unseen,
    ) -> ClickHouseSession:
        """Connect, and read the rows of the chosen runs.

        Raises:
            UsageError: the client is not installed, or there are more spans than are allowed.
            StoreError: the server is not there, a table is missing, or the user may not do what is needed.
        """
        progress("waiting for the store", 0, 0)
        session = cls(ServerSession(address), settings or SessionSettings())
        try:
            session.progress = progress
            session._read(selection)
        except BaseException:
            session.close()
            raise
        return session

    def run_ids(self) -> list[str]:
        """Return the chosen runs, in the order of first sight."""
        return list(self._run_ids)

    def close(self) -> None:
        """Close the connection and drop what was read."""
        self._there.close()
        super().close()

    def keep_verdicts(self, results: Sequence[RunResult]) -> str:
        """Publish facts and verdicts in clawtrace's own tables on the server; return why that could not be done, else nothing."""
        own = self.connection.address.own
        self._there.bring_up_to_date()
        try:
            publish(self.connection, results)
        except ServerError as error:
            if error.is_missing:
                return f"verdicts are not kept on the server: `clawtrace store init` makes the tables of {own!r}"
            if error.is_permission:
                user = self.connection.address.user
                return f"verdicts are not kept on the server: the user {user!r} may not write into {own!r}"
            raise
        return ""

    def _read(self, selection: Selection) -> None:
        """Read what was chosen."""
        from clawtrace.receiver.recordings.recording import load_requests

        key = self.settings.run_key
        keys = (RUN_ID, key) if key else (RUN_ID,)
        self.progress("choosing the runs", 0, 0)
        picked = pick(self.connection, selection, keys)
        with collector_paused():
            report = load_requests(
                self._read_requests(picked, keys), self._store, redaction=self.settings.redaction, run_key=key
            )
        forget_unknown(self._store)
        self._close_settled(report.run_ids)
        self._run_ids = self._chosen(report.run_ids, picked)
        self._note(report, picked)

    def _read_requests(self, picked: Picked, keys: tuple[str, ...]) -> Iterator[tuple[Signal, str]]:
        done = 0
        for signal, rows, body in requests(self.connection, picked, keys):
            done += rows if signal == "traces" else 0
            self.progress("reading spans", min(done, picked.spans), picked.spans)
            yield signal, body

    def _chosen(self, run_ids: Sequence[str], picked: Picked) -> list[str]:
        """Return the runs that were asked for, without those that were read because they are linked to one of them."""
        if picked.everything:
            return list(run_ids)
        asked = {run_id for run_id, trace in self._store.script(_OF_TRACES) if trace in picked.traces} | picked.runs
        return [run_id for run_id in run_ids if run_id in asked]

    def _close_settled(self, run_ids: Iterable[str]) -> None:
        """Close the runs that have been silent for long enough, by the server's clock."""
        now = int(self.connection.value("SELECT toUnixTimestamp64Nano(now64(9))"))
        silence = (_SETTLE_MS if self.settings.settle_ms is None else self.settings.settle_ms) * 1_000_000
        last = dict(self._store.script(_LAST))
        for run_id in run_ids:
            settled = now - last.get(run_id, 0) >= silence
            self._store.put_record(RunRecord(run_id, run_id, closed_by=ClosedBy.SETTLED if settled else None))

    def _note(self, report: LoadReport, picked: Picked) -> None:
        address = self.connection.address
        if not picked.has_logs:
            self.notes.append(f"there is no table {address.logs!r}: no log records are judged")
        for reason, number in report.rejected.items():
            self.notes.append(f"rejected {number} spans or log records: {reason}")
        if report.unattributed_logs:
            self.notes.append(f"{report.unattributed_logs} log records do not belong to any run")

    # Questions --------------------------------------------------------------------------------

    def _current(self, run_ids: Sequence[str], more: Iterable[str] = (), scopes: Iterable[Scope] = ()) -> _Engine:
        engine = super()._current(run_ids, more, scopes)
        self._there.facts_were_computed()
        return engine

    def _scoped(self, scopes: Sequence[Scope], run_ids: Sequence[str]) -> Mapping[Scope, ScopedFacts]:
        found = super()._scoped(scopes, run_ids)
        return {scope: _ScopedThere(one, self._there) for scope, one in found.items()}


class _ScopedThere(ScopedFacts):
    """A scope that is asked about on the server."""

    def __init__(self, found: ScopedFacts, there: ClickHouseRelations) -> None:
        vars(self).update(vars(found))
        self._there = there

    @contextmanager
    def holding(self) -> Iterator[None]:
        with super().holding(), self._there.scoped():
            yield

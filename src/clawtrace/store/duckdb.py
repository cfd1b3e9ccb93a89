"""The embedded store: one DuckDB file (or memory), one process.

Commits come from the receiver's writer thread, questions from the engine; each side has its own
connection to the same database, so a question never waits for a commit's decode. A commit is in DuckDB's
write-ahead log, synced, before `commit` returns.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clawtrace.errors import QueryError, StoreError
from clawtrace.model.query import BoundRelation, Query, Scalar
from clawtrace.model.raw import LogBatch, Receipt, SpanBatch
from clawtrace.model.relations import RELATIONS, Relation
from clawtrace.model.run import RunRecord
from clawtrace.store.adoption import RETIRED, adopt
from clawtrace.store.api import Answer, Columns
from clawtrace.store.markers import rewrite_markers
from clawtrace.store.owner import PATIENCE_SECONDS, connect, patiently
from clawtrace.store.records import read_record, write_record
from clawtrace.store.schema import create_tables, holds_store
from clawtrace.store.transaction import Transaction
from clawtrace.store.user_sql import check_single_select, time_limit

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from clawtrace.store.raw_inserts import RawInserts

__all__ = ["MEMORY", "DuckStore"]

MEMORY = ":memory:"

_CHECKPOINT_BYTES = 16 << 20
"""Write-ahead logs of less are replayed in no time, and cost more to move than they save."""

_COPIED_ROWS = 2_000
"""Relations of more rows are copied into a table when they are loaded."""


class DuckStore:
    """A span store in DuckDB; see `clawtrace.store.api` for what it promises.

    Args:
        path: file of the store, created when missing; `MEMORY` keeps everything in the process.
        patience_s: how long a file that another process holds is tried again, in seconds.

    Raises:
        StoreLockedError: another process holds the file.
        StoreSchemaError: the file is no clawtrace store or was written by another schema version.
        StoreError: the file cannot be opened or created.
    """

    def __init__(self, path: str | Path = MEMORY, *, patience_s: float = PATIENCE_SECONDS) -> None:
        self.path = str(path)
        self._db = patiently(partial(connect, self.path), patience_s)
        try:
            stored = self.path != MEMORY and holds_store(self._db, self.path)
            if not stored:
                create_tables(self._db, self.path)
            # Nothing outside of the store is read or written from here on, whatever SQL is asked.
            self._db.execute("SET enable_external_access = false")
            # Table functions can change settings from inside a SELECT: enable_logging() to a file disabled the store.
            self._db.execute("SET lock_configuration = true")
            self._writer = self._db.cursor()
            self._inserts: RawInserts | None = None
            """Prepared by the first commit; forgotten when a commit fails."""
            self._reader = self._db.cursor()
            self._reader.execute("CREATE TEMP TABLE selected_runs (run_id VARCHAR)")
            self._selected: list[str] = []
            self._loaded: dict[str, bool] = {}
            self._reader_lock = threading.RLock()
            self._writer_lock = threading.RLock()
            known = "SELECT run_id, run_no FROM run_numbers ORDER BY run_no"
            numbers = self._db.execute(known).fetchall() if stored else []
            self._numbers: dict[str, int] = {run_id: number for run_id, number in numbers if run_id != RETIRED}
            self._last_number: int = numbers[-1][1] if numbers else 0
            self._retired: list[str] = self._facts_left_behind() if len(self._numbers) < len(numbers) else []
            self._unsaved: list[tuple[int, str]] = []
        except BaseException:
            self._db.close()
            raise

    # Raw rows ---------------------------------------------------------------------------------

    def run_no(self, run_id: str) -> int:
        """Return the number of the run called `run_id`, giving it the next one when it is new.

        A new number becomes durable with the next commit.
        """
        with self._writer_lock:
            number = self._numbers.get(run_id)
            if number is None:
                number = self._last_number = self._last_number + 1
                self._numbers[run_id] = number
                self._unsaved.append((number, run_id))
            return number

    def run_ids(self) -> list[str]:
        """Return every run that was announced, recorded or sent spans, in the order of first sight."""
        with self._writer_lock:
            return list(self._numbers)

    def take_retired(self) -> list[str]:
        """Return the runs that are no more (their traces were adopted) and may still have facts; each is returned once."""
        with self._writer_lock:
            retired, self._retired = self._retired, []
            return retired

    def _facts_left_behind(self) -> list[str]:
        left = "SELECT run_id FROM fact_state WHERE run_id NOT IN (SELECT run_id FROM run_numbers)"
        return [row[0] for row in self._db.execute(left).fetchall()]

    def known_runs(self) -> tuple[list[tuple[str, int]], list[tuple[str, int, str]]]:
        """Return what attribution starts from: (run id, number) of every run, and (trace id, number, rule) of every trace.

        The strongest rule of a trace is the least of its spans' rules that is not ``none``.
        """
        with self._writer_lock:
            traces = self._db.execute(
                'SELECT "TraceId", arg_min(run_no, unattributed), '
                "CASE WHEN min(unattributed) = 1 THEN 'none' ELSE 'trace' END FROM ("
                "SELECT DISTINCT \"TraceId\", run_no, CASE WHEN run_rule = 'none' THEN 1 ELSE 0 END AS unattributed "
                'FROM otel_traces) GROUP BY "TraceId"'
            ).fetchall()
            return list(self._numbers.items()), traces

    def announced_sessions(self) -> list[tuple[str, int]]:
        """Return (session id, run number) of every session that a run's record announces."""
        with self._writer_lock:
            said = "SELECT record FROM run_records WHERE record LIKE ? ORDER BY written_ns"
            rows = self._db.execute(said, ['%"session_ids": ["%']).fetchall()
            records = [read_record(text) for (text,) in rows]
            return [(session, self._numbers[one.run_id]) for one in records for session in one.session_ids]

    def record(self, run_id: str) -> RunRecord | None:
        """Return what is known of a run apart from its spans; None when nothing was recorded."""
        with self._writer_lock:
            row = self._db.execute("SELECT record FROM run_records WHERE run_id = ?", [run_id]).fetchone()
        return read_record(row[0]) if row else None

    def commit(
        self,
        spans: SpanBatch,
        logs: LogBatch,
        receipts: list[Receipt],
        adopted: list[tuple[str, int, str]],
    ) -> None:
        """Write one group of requests in one transaction (see `clawtrace.model.raw.RawSink`)."""
        from clawtrace.store.raw_inserts import RawInserts

        with self._writer_lock:
            unsaved = list(self._unsaved)
            inserts, self._inserts = self._inserts or RawInserts(self._writer), None
            with Transaction(self._writer, self.path) as db:
                self._write_numbers(db, unsaved)
                inserts.spans(spans)
                inserts.logs(logs)
                inserts.receipts(receipts)
                retired = adopt(db, adopted, self._numbers)
            self._inserts = inserts
            del self._unsaved[: len(unsaved)]
            for run_id in retired:
                del self._numbers[run_id]
            self._retired += retired

    def _write_numbers(self, db: DuckDBPyConnection, unsaved: list[tuple[int, str]]) -> None:
        if unsaved:
            numbers, names = zip(*unsaved, strict=True)
            db.execute("INSERT INTO run_numbers SELECT unnest(?), unnest(?), false", [list(numbers), list(names)])

    def put_record(self, record: RunRecord) -> None:
        """Store what is known of a run apart from its spans; the newest record of a run counts."""
        run_id = record.run_id
        with self._writer_lock:
            self.run_no(run_id)
            unsaved = list(self._unsaved)
            with Transaction(self._writer, self.path) as db:
                self._write_numbers(db, unsaved)
                db.execute("DELETE FROM run_records WHERE run_id = ?", [run_id])
                db.execute("INSERT INTO run_records VALUES (?, ?, ?)", [run_id, write_record(record), time.time_ns()])
            del self._unsaved[: len(unsaved)]

    def put_conflicts(self, run_no: int, messages: Sequence[str]) -> None:
        """Store the attribution conflicts of a run, one sentence each; the newest list of a run counts."""
        with self._writer_lock, Transaction(self._writer, self.path) as db:
            db.execute("DELETE FROM run_conflicts WHERE run_no = ?", [run_no])
            for message in messages:
                db.execute("INSERT INTO run_conflicts VALUES (?, ?)", [run_no, message])

    # Facts ------------------------------------------------------------------------------------

    def script(self, sql: str, params: Mapping[str, Scalar] | None = None) -> list[tuple[Any, ...]]:
        """Run the engine's own SQL on the question side and return the last statement's rows.

        Raises:
            StoreError: the engine's words; nothing is rolled back here (the caller owns the transaction).
        """
        import duckdb

        with self._reader_lock:
            try:
                cursor = self._reader.execute(sql, dict(params) if params else None)
                return cursor.fetchall() if cursor.description else []
            except duckdb.Error as error:
                raise StoreError(f"the store {self.path!r} refused a statement: {error}") from error

    def load(self, name: str, columns: Mapping[str, tuple[str, Sequence[Any]]]) -> None:
        """Make the temporary relation `name` of the question side hold exactly these columns.

        A few rows are read where they are; only many are copied into a table, whose statistics the planner then has
        (creating a table costs more than a millisecond, and one recorded run loads some twenty relations).
        """
        from clawtrace.store.arrow import rows_table

        rows = rows_table(columns)
        copied = len(next(iter(columns.values()))[1]) > _COPIED_ROWS
        with self._reader_lock:
            if self._loaded.get(name, copied) != copied:
                self._reader.execute(f'DROP {"VIEW" if copied else "TABLE"} "{name}"')
            self._loaded[name] = copied
            if not copied:
                self._reader.register(name, rows)
                return
            self._reader.register("incoming", rows)
            self._reader.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT * FROM incoming')
            self._reader.unregister("incoming")

    def insert(self, table: str, columns: Mapping[str, tuple[str, Sequence[Any]]]) -> None:
        """Append rows to a table, by column name; the caller owns the transaction.

        Raises:
            StoreError: the engine's words.
        """
        from clawtrace.store.arrow import rows_table

        if not next(iter(columns.values()))[1]:
            return
        with self._reader_lock:
            self._reader.register("incoming", rows_table(columns))
            self.script(f'INSERT INTO "{table}" BY NAME SELECT * FROM incoming')
            self._reader.unregister("incoming")

    @property
    def lock(self) -> threading.RLock:
        """Hold it over several calls that belong together on the question side."""
        return self._reader_lock

    # Questions --------------------------------------------------------------------------------

    def select_runs(self, run_ids: Iterable[str]) -> None:
        """Make ``selected_runs`` hold exactly `run_ids`."""
        wanted = list(run_ids)
        with self._reader_lock:
            if wanted == self._selected:
                return
            self._selected = []
            self._reader.execute("DELETE FROM selected_runs")
            if len(wanted) <= _COPIED_ROWS:
                self._reader.execute("INSERT INTO selected_runs SELECT unnest(?::VARCHAR[])", [wanted])
            else:
                from clawtrace.store.arrow import rows_table

                self._reader.register("incoming", rows_table({"run_id": ("text", wanted)}))
                self._reader.execute("INSERT INTO selected_runs SELECT run_id FROM incoming")
                self._reader.unregister("incoming")
            self._selected = wanted

    def ask(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Answer:
        """Answer one query over the relations, ``selected_runs`` and `bound`."""
        with self._reader_lock:
            self._bind(bound)
            return self._answer(query)

    def ask_columns(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Columns:
        """Answer as `ask` does; of many runs in columns whose values become Python's when they are read.

        Arrow's stream costs a second planning, which only many rows repay.
        """
        if len(self._selected) <= _COPIED_ROWS:
            return self.ask(query, bound)
        import duckdb

        from clawtrace.store.columns import ColumnAnswer

        with self._reader_lock:
            self._bind(bound)
            try:
                text = rewrite_markers(query.sql, "$")
                return ColumnAnswer(self._reader.sql(text, params=dict(query.params) or None))
            except (duckdb.Error, RuntimeError) as error:  # what fails while rows are read comes through nanoarrow
                raise QueryError(str(error)) from error

    @contextlib.contextmanager
    def narrowed(self, run_ids: Sequence[str], queries: Sequence[Query]) -> Iterator[None]:
        """Answer `queries` inside from copies of these runs' rows: twenty of them then read each relation once.

        Temporary tables hide the relations that the texts name, with the columns that they name.
        """
        text = " ".join(query.sql for query in queries)
        hidden: list[str] = []
        with self._reader_lock:
            self.select_runs(run_ids)
            try:
                for relation in RELATIONS.values():
                    columns = _columns_read(relation, text)
                    if relation.name != "attributes" and columns:  # that one is a view
                        self._reader.execute(
                            f"CREATE TEMP TABLE {relation.name} AS SELECT r.{', r.'.join(columns)} "
                            f"FROM {relation.name} AS r JOIN selected_runs AS s ON s.run_id = r.run_id"
                        )
                        hidden.append(relation.name)
                yield
            finally:
                for name in hidden:
                    self._reader.execute(f"DROP TABLE temp.{name}")

    def _bind(self, bound: Sequence[BoundRelation]) -> None:
        for relation in bound:
            values, items = zip(*relation.rows, strict=True) if relation.rows else ((), ())
            self.load(relation.name, {"value": ("text", values), "item": ("bigint", items)})

    def _answer(self, query: Query, max_rows: int | None = None) -> Answer:
        import duckdb

        try:
            cursor = self._reader.execute(rewrite_markers(query.sql, "$"), dict(query.params) or None)
            columns = tuple(column[0] for column in cursor.description)
            return Answer(columns, cursor.fetchall() if max_rows is None else cursor.fetchmany(max_rows))
        except duckdb.Error as error:
            raise QueryError(str(error)) from error

    def ask_user(
        self,
        sql: str,
        params: Mapping[str, Scalar] | None = None,
        *,
        time_limit_s: float | None = None,
        max_rows: int | None = None,
    ) -> Answer:
        """Answer a user's own SQL: exactly one SELECT, in a read-only transaction (see `clawtrace.store.api`).

        Raises:
            QueryError: the text is no single SELECT, the engine refuses it, or the time limit has passed.
        """
        with self._reader_lock:
            check_single_select(rewrite_markers(sql, "$"))
            self._reader.execute("BEGIN TRANSACTION READ ONLY")
            try:
                with time_limit(self._reader, time_limit_s):
                    return self._answer(Query(sql, dict(params or {})), max_rows)
            finally:
                self._reader.execute("ROLLBACK")

    def checkpoint(self) -> None:
        """Move what the write-ahead log holds into the file, when it is worth it; meant for when nothing arrives.

        A log that cannot be moved now, because facts are being written, is left for the next time.
        """
        import duckdb

        log = Path(f"{self.path}.wal")
        if self.path == MEMORY or not log.exists() or log.stat().st_size < _CHECKPOINT_BYTES:
            return
        with self._writer_lock, contextlib.suppress(duckdb.Error):
            self._writer.execute("CHECKPOINT")

    def close(self) -> None:
        """Write what a later open would have to replay, and let go of the file. Safe to call twice."""
        import duckdb

        with self._writer_lock, self._reader_lock:
            for connection in (self._reader, self._writer, self._db):
                try:
                    connection.close()
                except duckdb.Error as error:
                    raise StoreError(f"cannot close the store {self.path!r}: {error}") from error


def _columns_read(relation: Relation, sql: str) -> list[str]:
    """Return the columns of `relation` that a text may read; none where it does not name the relation."""
    named = re.findall(rf"\b(?:FROM|JOIN)\s+{relation.name}\b(?: AS (\w+))?", sql, re.IGNORECASE)
    read = {column for alias in named if alias for column in re.findall(rf"\b{alias}\.(\w+|\*)", sql)}
    if "" in named or "*" in read:
        return list(relation.column_names)
    return [name for name in relation.column_names if name in read]

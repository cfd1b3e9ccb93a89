"""Raw rows on their way into the tables: acknowledged from the journal, moved in bulk.

To insert a few spans costs DuckDB 70 µs a span, to insert thousands at once 20. So a small group is only appended to the
journal and held in memory; it is moved, together with all that gathered, when enough rows did, before anything reads the
raw tables, when nothing arrives for a while, and when the store is closed or opened again after its process was killed.

Here, too: traces that stood for themselves are given to the run that they turn out to belong to (spec: span-model.md §2, rules 5 to 9).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from clawtrace.errors import StoreError
from clawtrace.model.raw import LogBatch, Receipt, SpanBatch, joined
from clawtrace.store.arrow import ArrowTable, logs_table, rows_table, spans_table
from clawtrace.store.files.failures import as_store_errors
from clawtrace.store.raw.journal import Group, Journal, problem

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["RETIRED", "RawRows", "adopt", "insert_rows", "transaction", "write_numbers"]

RETIRED = ""
"""The run id of a number whose run is no more; its row stays, so that no number is used twice."""

# A run of the trace's name that was announced, or whose spans said so themselves, stays.
_KEPT = """
SELECT run_no FROM otel_traces WHERE run_no IN (SELECT unnest($alone))
UNION SELECT run_no FROM otel_logs WHERE run_no IN (SELECT unnest($alone))
UNION SELECT n.run_no FROM run_numbers AS n JOIN run_records AS r ON r.run_id = n.run_id
"""


def adopt(db: DuckDBPyConnection, adopted: Sequence[tuple[str, int, str]], numbers: Mapping[str, int]) -> list[str]:
    """Attribute traces to runs in the caller's transaction, and retire the runs that stood for these traces alone.

    What the receiver counted for a retired run counts for the one that its trace belongs to.

    Args:
        adopted: (trace id, run number, rule).
        numbers: the number of each run, by run id; an unattributed trace is a run under its trace id.

    Returns:
        The ids of the retired runs.
    """
    for trace_id, run_no, rule in adopted:
        for table in ("otel_traces", "otel_logs"):
            db.execute(
                f'UPDATE {table} SET run_no = ?, run_rule = ? WHERE "TraceId" = ? AND run_rule = ?',
                [run_no, rule, trace_id, "none"],
            )
    owners = {trace_id: run_no for trace_id, run_no, _ in adopted if numbers.get(trace_id, run_no) != run_no}
    if not owners:
        return []
    kept = {row[0] for row in db.execute(_KEPT, {"alone": [numbers[trace_id] for trace_id in owners]}).fetchall()}
    retired = [trace_id for trace_id in owners if numbers[trace_id] not in kept]
    for trace_id in retired:
        db.execute("UPDATE receipts SET run_no = ? WHERE run_no = ?", [owners[trace_id], numbers[trace_id]])
        db.execute("UPDATE run_numbers SET run_id = ? WHERE run_no = ?", [RETIRED, numbers[trace_id]])
    return retired


@contextlib.contextmanager
def transaction(db: DuckDBPyConnection, path: str) -> Iterator[DuckDBPyConnection]:
    """BEGIN … COMMIT, ROLLBACK on any error; engine errors become `StoreError`."""
    import duckdb

    with as_store_errors(path, "write to"):
        try:
            db.execute("BEGIN")
            yield db
            db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                db.execute("ROLLBACK")
            raise


_SPANS = """
INSERT INTO otel_traces BY NAME
SELECT *,
       make_timestamp_ns(least(start_ns, 9223372036854775806)::BIGINT) AS "Timestamp",
       CASE WHEN end_ns >= start_ns THEN end_ns - start_ns ELSE 0 END AS "Duration"
FROM incoming
RETURNING 1
"""
"""What it returns is of no use. But DuckDB inserts in one thread then, and spares 2 of 21 µs a span: two threads gather
rows apart, and copy them once more where they are fewer than a row group."""

_LOGS = """
INSERT INTO otel_logs BY NAME
SELECT *, make_timestamp_ns(least(time_ns, 9223372036854775806)::BIGINT) AS "Timestamp",
       make_timestamp_ms((least(time_ns, 9223372036854775806) // 1000000000 * 1000)::BIGINT)::TIMESTAMP_S AS "TimestampTime"
FROM incoming
"""

_RECEIPTS = "INSERT INTO receipts BY NAME SELECT * FROM incoming"

_RECEIPT_TYPES = {
    "run_no": "bigint",
    "request_no": "bigint",
    "arrival_ns": "bigint",
    "protocol": "text",
    "signal": "text",
    "accepted": "bigint",
    "duplicates": "bigint",
    "rejected": "bigint",
    "refused": "bigint",
    "reason": "text",
}


def write_numbers(db: DuckDBPyConnection, numbers: Sequence[tuple[int, str]]) -> None:
    """Insert the numbers and ids of new runs."""
    if numbers:
        values, run_ids = zip(*numbers, strict=True)
        db.execute("INSERT INTO run_numbers SELECT unnest(?), unnest(?), false", [list(values), list(run_ids)])


def insert_rows(db: DuckDBPyConnection, spans: SpanBatch, logs: LogBatch, receipts: Sequence[Receipt]) -> None:
    """Insert spans, log records and receipts."""
    if len(spans):
        _insert(db, _SPANS, spans_table(spans))
    if len(logs):
        _insert(db, _LOGS, logs_table(logs))
    if receipts:
        values = dict(zip(Receipt._fields, zip(*receipts, strict=True), strict=True))
        columns = {name: (kind, values[name]) for name, kind in _RECEIPT_TYPES.items()}
        _insert(db, _RECEIPTS, rows_table(columns))


def _insert(db: DuckDBPyConnection, sql: str, rows: ArrowTable) -> None:
    db.register("incoming", rows)
    try:
        db.execute(sql)
    finally:
        db.unregister("incoming")


T = TypeVar("T")

_MANY_ROWS = 4_096
"""So many are moved at once: more make it no cheaper, and they take memory and the time of the one that waits."""

_LARGE_GROUP = 1_024
"""A group of so many rows is moved at once: it costs less than to write it twice."""
_MANY_BYTES = 16 << 20
"""A journal of so many bytes is moved; what it holds is held in memory too, and read when a store is opened."""


class RawRows:
    """The writing side of the raw tables; every call is made under the lock of that side.

    Args:
        db: the connection that writes.
        path: file of the store, for messages.
        journal: where acknowledged groups are kept; None for a store in memory, which nothing survives.
    """

    def __init__(self, db: DuckDBPyConnection, path: str, journal: Journal | None) -> None:
        self._db = db
        self._path = path
        self._journal = journal
        self._opened = None if journal is None else Path(path).stat()
        self._held: list[Group] = []
        self._rows = 0
        self._store_id = ""
        self._last = 0
        """Number of the last group that was journaled."""

    def __bool__(self) -> bool:
        """Whether anything waits to be moved."""
        return bool(self._held)

    def must_be_there(self) -> None:
        """Refuse to use a file that nothing can open again; never called of a store in memory.

        Raises:
            StoreError: it was deleted, moved or replaced.
        """
        assert self._opened is not None
        with contextlib.suppress(OSError):
            if os.path.samestat(Path(self._path).stat(), self._opened):
                return
        raise StoreError(
            f"the store {self._path!r} was deleted, moved or replaced while it was open, and what it took since its last start may "
            "be lost. Put it back, or start again."
        )

    def take(self, group: Group) -> bool:
        """Make a group durable, to be moved later; False when it should be moved at once, with all that waits.

        Raises:
            StoreError: nothing of it was written.
        """
        if self._journal is not None:
            self.must_be_there()
        if group.rows >= _LARGE_GROUP or self._rows + group.rows >= _MANY_ROWS:
            return False
        if self._journal is not None:
            if self._journal.size >= _MANY_BYTES:
                return False
            for batch in (group.spans, group.logs):
                if len(batch) and (found := problem(batch)):
                    raise StoreError(f"cannot write to the store {self._path!r}: {found}")
            if not self._store_id:
                self._begin()
            self._journal.append(self._store_id, self._last + 1, group)
            self._last += 1
        self._held.append(group)
        self._rows += group.rows
        return True

    def move(self, group: Group | None = None, then: Callable[[DuckDBPyConnection], T] | None = None) -> T | None:
        """Write all that waits, and `group`, into the tables in one transaction, whose last step is `then`.

        Raises:
            StoreError: nothing was moved; what waits still does, and is as durable as before.
        """
        groups = [*self._held, *([] if group is None else [group])]
        with transaction(self._db, self._path) as db:
            numbers = [pair for one in groups for pair in one.numbers]
            write_numbers(db, numbers)
            receipts = [receipt for one in groups for receipt in one.receipts]
            insert_rows(db, joined([one.spans for one in groups]), joined([one.logs for one in groups]), receipts)
            if self._held and self._journal is not None:
                db.execute("UPDATE journal_state SET moved = ?", [self._last])
            done = then(db) if then else None
        self._held, self._rows = [], 0
        if self._journal is not None:
            self._journal.clear()
        return done

    def recover(self) -> None:
        """Move what a process that was killed left in the journal.

        Raises:
            StoreError: it cannot be read or moved; it is left as it is.
        """
        if self._journal is None or not self._journal.exists():
            return
        self._begin()
        for number, group in self._journal.groups(self._store_id, self._last):
            if number > self._last:
                self._held.append(group)
                self._last = number
        if self._held:
            self.move()
        self._journal.remove()

    def close(self) -> None:
        """Move all that waits, and leave no journal behind.

        Raises:
            StoreError: it could not be moved; the next one to open the store does it.
        """
        try:
            if self._held:
                self.move()
            if self._journal is not None:
                self._journal.remove()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the journal with what waits in it: the next process to open the store moves it."""
        if self._journal is not None:
            self._journal.close()

    def _begin(self) -> None:
        """Read the id of the store and the number of the last group in the tables."""
        ((self._store_id, self._last),) = self._db.execute("SELECT store_id, moved FROM journal_state").fetchall()

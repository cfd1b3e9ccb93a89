"""The embedded store: one DuckDB file (or memory), one process.

Commits come from the receiver's writer thread, questions from the engine; each side has its own connection to the same
database, so a question never waits for a commit's decode. A commit is in the journal or in DuckDB's write-ahead log,
synced, before `commit` returns (see `clawtrace.store.raw.raw_rows`); every reader of raw rows moves them into their tables
first.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clawtrace.errors import StoreError
from clawtrace.model.raw import LogBatch, Receipt, SpanBatch
from clawtrace.model.run import RunRecord, read_record, write_record
from clawtrace.store.files.cached_blocks import CachedBlocks
from clawtrace.store.files.failures import as_store_errors, keep_unread_log, try_to_write
from clawtrace.store.files.owner import PATIENCE_SECONDS, connect, load_duckdb, patiently
from clawtrace.store.files.schema import create_tables, holds_store, renew
from clawtrace.store.questions.question_side import QuestionSide
from clawtrace.store.raw.journal import Group, Journal
from clawtrace.store.raw.raw_rows import RETIRED, RawRows, adopt, transaction, write_numbers

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["MEMORY", "DuckStore"]

MEMORY = ":memory:"

_CHECKPOINT_BYTES = 16 << 20
"""Write-ahead logs of less are replayed in no time, and cost more to move than they save."""

_MERGED_BYTES = 64 << 20
"""Row groups of a file of at most so many are merged when it is closed: each session leaves one more in every table."""

_ROOM_BYTES = 16 << 20
"""A full disk has room again when so much can be written: as much as the journal may hold (`clawtrace.store.raw.raw_rows`)."""

_SIDES = 2
"""Question sides of one store. In parallel two do 1.7 times the work of one; what they cannot share is Python."""


class DuckStore(QuestionSide):
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
        load_duckdb()
        self.path = str(path)
        self._writer_lock = threading.RLock()  # taken after `lock` where both are needed, never before it
        self._lost = ""
        """Why the file could not be opened again; empty while it is open."""
        self._numbers: dict[str, int] = {}
        self._last_number = 0
        self._retired: list[str] = []
        self._unsaved: list[tuple[int, str]] = []
        super().__init__(self._open(patience_s), self.path, self._settle)

    def _open(self, patience_s: float) -> DuckDBPyConnection:
        """Open the file, and move what its journal holds; return the connection that asks."""
        self._db = patiently(partial(connect, self.path), patience_s)
        with as_store_errors(self.path), contextlib.ExitStack() as unless_open:
            unless_open.callback(self._db.close)
            if self.path != MEMORY:
                keep_unread_log(self._db, self.path)
            stored = self.path != MEMORY and holds_store(self._db, self.path)
            if stored:
                renew(self._db, self.path)
            else:
                create_tables(self._db, self.path)
            # Nothing outside of the store is read or written from here on, by any SQL.
            self._db.execute("SET enable_external_access = false")
            # Table functions can change settings from inside a SELECT: enable_logging() to a file disabled the store.
            self._db.execute(
                "SET allowed_configs = ['memory_limit', 'max_vacuum_tasks', 'allocator_background_threads']"
            )
            self._db.execute("SET lock_configuration = true")
            self._writer = self._db.cursor()
            self._raw = RawRows(self._writer, self.path, None if self.path == MEMORY else Journal(self.path))
            self._raw.recover()
            numbers = "SELECT run_id, run_no FROM run_numbers ORDER BY run_no"
            self._know(self._db.execute(numbers).fetchall() if stored else [])
            reader = self._db.cursor()
            unless_open.pop_all()
            return reader

    def _know(self, numbers: Sequence[tuple[str, int]]) -> None:
        """Load the numbers of the runs in the file; new ones that it lacks are written with the next commit."""
        held = {number for _, number in numbers}
        self._unsaved = [pair for pair in self._unsaved if pair[0] not in held]
        self._numbers = {run_id: number for run_id, number in numbers if run_id != RETIRED}
        if len(self._numbers) < len(numbers):
            left = "SELECT run_id FROM fact_state WHERE run_id NOT IN (SELECT run_id FROM run_numbers)"
            self._retired = [row[0] for row in self._rows(left)]
        self._numbers |= {run_id: number for number, run_id in self._unsaved}
        self._last_number = max([self._last_number, *held])

    def _use(self, connection: DuckDBPyConnection) -> None:
        super()._use(connection)
        self._more_sides: list[QuestionSide] = []
        self._blocks = CachedBlocks(self._writer, self._reader_lock)

    def mend(self) -> None:
        """Recover the store after a failure: reopen it if its engine has stopped, and write what waits.

        Queries of other threads are refused meanwhile. It is called again until it succeeds.

        Raises:
            StoreError: it still does not work; what was acknowledged is as durable as before.
        """
        if self.path != MEMORY:
            self._raw.must_be_there()
            try_to_write(self.path, _ROOM_BYTES)
            if self._has_stopped():
                if not self._reader_lock.acquire(blocking=False):
                    raise StoreError(f"the store {self.path!r} is opened again when nobody asks it")
                try:
                    with self._writer_lock:
                        self._open_again()
                finally:
                    self._reader_lock.release()
        self.checkpoint()

    def _has_stopped(self) -> bool:
        import duckdb

        try:
            with self._writer_lock:
                self._writer.execute("SELECT 1")
        except duckdb.Error:
            return True
        return False

    def _open_again(self) -> None:
        """Close and reopen the file: DuckDB rejects all work on one whose checkpoint failed."""
        import duckdb

        self._lost = f"the store {self.path!r} is being opened again"
        self._raw.abandon()
        for connection in self._connections():
            with contextlib.suppress(duckdb.Error):
                connection.close()
        try:
            with as_store_errors(self.path, "open"):
                self._use(self._open(0))
        except StoreError as error:
            self._lost = str(error)
            raise
        self._lost = ""

    def _connections(self) -> list[DuckDBPyConnection]:
        return [self._writer, *(side._reader for side in self._more_sides), self._reader, self._db]

    def _rows(self, sql: str, params: object = None) -> list[tuple[Any, ...]]:
        """Return the rows of one SELECT, on a separate connection."""
        with self._writer_lock, as_store_errors(self.path):
            return self._db.execute(sql, params).fetchall()

    # Raw rows ---------------------------------------------------------------------------------

    def run_no(self, run_id: str) -> int:
        """Return the number of the run called `run_id`, giving it the next one when it is new.

        A new number becomes durable with the next commit.

        Raises:
            StoreError: the id is no valid Unicode; no commit could write it.
        """
        with self._writer_lock:
            number = self._numbers.get(run_id)
            if number is None:
                try:
                    run_id.encode()
                except UnicodeEncodeError as error:
                    raise StoreError(f"the id of a run {run_id!r} is no valid Unicode") from error
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

    def known_runs(self) -> tuple[list[tuple[str, int]], list[tuple[str, int, str]]]:
        """Return what attribution starts from: (run id, number) of every run, and (trace id, number, rule) of every trace.

        The strongest rule of a trace is the least of its spans' rules that is not ``none``.
        """
        with self._writer_lock:
            self._settle()
            traces = self._rows(
                'SELECT "TraceId", arg_min(run_no, unattributed), '
                "CASE WHEN min(unattributed) = 1 THEN 'none' ELSE 'trace' END FROM ("
                "SELECT DISTINCT \"TraceId\", run_no, CASE WHEN run_rule = 'none' THEN 1 ELSE 0 END AS unattributed "
                'FROM otel_traces) GROUP BY "TraceId"'
            )
            return list(self._numbers.items()), traces

    def record(self, run_id: str) -> RunRecord | None:
        """Return what is known of a run apart from its spans; None when nothing was recorded."""
        rows = self._rows("SELECT record FROM run_records WHERE run_id = ?", [run_id])
        return read_record(rows[0][0]) if rows else None

    def commit(
        self,
        spans: SpanBatch,
        logs: LogBatch,
        receipts: list[Receipt],
        adopted: list[tuple[str, int, str]],
    ) -> None:
        """Write one group of requests in one transaction (see `clawtrace.model.raw.RawSink`)."""
        with self._writer_lock:
            if self._lost:  # what is in the journal has not been read yet
                raise StoreError(self._lost)
            group = Group(list(self._unsaved), spans, logs, receipts)
            retired: list[str] = []
            if adopted or not self._raw.take(group):
                retired = self._raw.move(group, lambda db: adopt(db, adopted, self._numbers)) or []
            if self.path != MEMORY:  # there is no file to read from what is dropped
                self._blocks.wrote(group.rows)
            del self._unsaved[: len(group.numbers)]
            for run_id in retired:
                del self._numbers[run_id]
            self._retired += retired

    def must_be_there(self) -> None:
        """Raise a `StoreError` where the store's file was deleted, moved or replaced; one in memory is always there."""
        if self.path != MEMORY:
            self._raw.must_be_there()

    def _settle(self) -> None:
        """Move what was acknowledged into the tables, before they are read."""
        if self._raw:
            with self._writer_lock:
                if self._raw:
                    self._raw.move()

    def put_record(self, record: RunRecord) -> None:
        """Store what is known of a run apart from its spans; the newest record of a run counts.

        Raises:
            StoreError: it cannot be written, or the store's file was deleted, moved or replaced: a run in it could not be judged again.
        """
        run_id = record.run_id
        if self.path != MEMORY:
            self._raw.must_be_there()
        self.run_no(run_id)
        with self.transaction() as db:
            db.execute("DELETE FROM run_records WHERE run_id = ?", [run_id])
            db.execute("INSERT INTO run_records VALUES (?, ?, ?)", [run_id, write_record(record), time.time_ns()])

    @contextlib.contextmanager
    def transaction(self) -> Iterator[DuckDBPyConnection]:
        """Yield the writing side for one transaction, once all acknowledged rows are in its tables.

        Raises:
            StoreError: it could not be written; nothing of it is then there.
        """
        with self._writer_lock:
            self._settle()
            unsaved = list(self._unsaved)
            with transaction(self._writer, self.path) as db:
                write_numbers(db, unsaved)
                yield db
            del self._unsaved[: len(unsaved)]

    def forget_numbers(self, run_ids: Collection[str]) -> None:
        """Drop the numbers of runs that were deleted from every table."""
        with self._writer_lock:
            for run_id in run_ids:
                del self._numbers[run_id]

    def put_conflicts(self, run_no: int, messages: Sequence[str]) -> None:
        """Store the attribution conflicts of a run, one sentence each; the newest list of a run counts."""
        with self.transaction() as db:
            db.execute("DELETE FROM run_conflicts WHERE run_no = ?", [run_no])
            for message in messages:
                db.execute("INSERT INTO run_conflicts VALUES (?, ?)", [run_no, message])

    def put_judgements(self, run_id: str, asked_by: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Store the scores that judges gave a run, in place of those that the same asked for before."""
        with self.transaction() as db:
            db.execute("DELETE FROM judge_scores WHERE run_id = ? AND asked_by = ?", [run_id, asked_by])
            if rows:
                db.executemany(f"INSERT INTO judge_scores VALUES ({', '.join('?' * len(rows[0]))})", rows)

    def sides(self) -> Sequence[QuestionSide]:
        """Return what can be asked at the same time, each by one thread; the store itself is the first.

        The caller holds `lock` for as long as it uses them.
        """
        with self._reader_lock:
            while len(self._more_sides) < _SIDES - 1:
                self._more_sides.append(QuestionSide(self._db.cursor(), self.path, self._settle))
            return [self, *self._more_sides]

    def checkpoint(self, *, whole: bool = False) -> None:
        """Move what waits into the tables and, when it is worth it, the write-ahead log into the file.

        Meant for when nothing arrives. A log that cannot be moved now, because facts are being written, is left for the
        next time.

        Args:
            whole: move the log in any case; the place of what was deleted is free only then.

        Raises:
            StoreError: what waits could not be moved; it is as durable as before.
        """
        self._settle()
        if self.path == MEMORY:
            return
        import duckdb

        least = 0 if whole else _CHECKPOINT_BYTES
        left_alone = contextlib.suppress(FileNotFoundError, duckdb.TransactionException)
        with self._writer_lock, as_store_errors(self.path, "write to"), left_alone:
            if Path(f"{self.path}.wal").stat().st_size >= least:
                self._writer.execute("CHECKPOINT")

    def files(self) -> list[str]:
        """Return the paths of the store's files, which need not be there; of one in memory none."""
        return [] if self.path == MEMORY else [self.path, f"{self.path}.wal", f"{self.path}.journal"]

    def compress(self) -> None:
        """Compress what a store in memory holds, as a file's checkpoint does; what is being written now waits for the next time."""
        import duckdb

        if self.path == MEMORY:
            self._settle()
            with self._writer_lock, contextlib.suppress(duckdb.Error):
                self._writer.execute("CHECKPOINT")

    @contextlib.contextmanager
    def returning_memory(self) -> Iterator[None]:
        """Return to the system, inside, what DuckDB has freed: else the gigabyte that one step took stays for the next one.

        A thread of its allocator does it. At other times there is none, since the process may fork.
        """
        with as_store_errors(self.path, "use"):
            self._db.cursor().execute("SET allocator_background_threads = true")
        try:
            yield
        finally:
            with as_store_errors(self.path, "use"):
                self._db.cursor().execute("SET allocator_background_threads = false")

    def _merge_when_small(self) -> None:
        """Let the last checkpoint merge row groups if that takes little memory."""
        import duckdb

        with contextlib.suppress(OSError, duckdb.Error):  # closed before, or the file is gone
            if self.path != MEMORY and Path(self.path).stat().st_size <= _MERGED_BYTES:
                self._writer.execute("SET max_vacuum_tasks = 100")

    def close(self) -> None:
        """Write what a later open would have to replay, and let go of the file. Safe to call twice.

        Raises:
            StoreError: the file could not be written; what was acknowledged is moved when the store is opened next.
        """
        with self._reader_lock, self._writer_lock:
            try:
                if self._lost:
                    self._raw.abandon()
                    raise StoreError(self._lost)
                self._raw.close()
                self._merge_when_small()
            finally:
                for connection in self._connections():
                    with as_store_errors(self.path, "close"):
                        connection.close()

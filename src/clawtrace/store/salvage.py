"""Salvage: writes the readable rows of a damaged store, its log and its journal into a new store.

Rows that cannot be read are lost; every run that may have had one of them is incomplete in the new store, so that nothing
passes for what is missing.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clawtrace.errors import InputError, StoreDamagedError, StoreError, StoreLockedError, StoreSchemaError
from clawtrace.model.raw import LogBatch, Receipt, SpanBatch
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.files.failures import as_store_errors, log_is_unread
from clawtrace.store.files.owner import connect
from clawtrace.store.files.schema import create_tables
from clawtrace.store.raw.journal import Journal
from clawtrace.store.raw.raw_rows import insert_rows, transaction, write_numbers

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Salvaged", "salvage"]

_TABLES = (
    *("run_numbers", "run_records", "run_conflicts", "deleted_runs", "judge_scores"),
    *("receipts", "otel_traces", "otel_logs"),
)
"""Tables that are not computed from others."""
_OF_RUNS = ("receipts", "otel_traces", "otel_logs", "run_conflicts")
"""Tables without whose rows a run looks more complete than it is."""
_ROWS = 2_048
"""DuckDB reads so many rows at a time; of fewer none is tried alone."""
_WHERE = re.compile(r"entry at byte position (\d+)")
_WHY = "a part of its store was damaged and is lost"


class Salvaged(NamedTuple):
    """The result of a salvage."""

    rows: dict[str, tuple[int, int]]
    """Rows in the new store and lost rows, by table."""
    lost: list[str]
    """Other losses, one sentence each."""
    runs: int
    """The number of runs in the new store."""
    incomplete: int
    """The number of runs among them that may be incomplete."""


def salvage(path: Path, target: Path) -> Salvaged:
    """Write what can be read of the store `path` into the new store `target`; `path` is only read.

    Raises:
        InputError: there is no such store, `target` is there already, or nothing could be read.
        StoreLockedError: another process holds the store.
        StoreSchemaError: it is no store, or one of a newer version.
        StoreError: the new store cannot be written.
    """
    if not path.is_file():
        raise InputError(f"there is no store {str(path)!r}; check the path.")
    if target.exists():
        raise InputError(f"{str(target)!r} is there already: name a file that does not exist; nothing is written over.")
    with suppress(StoreDamagedError):
        _refuse_held(path)
    with tempfile.TemporaryDirectory(prefix=".salvage-", dir=target.absolute().parent) as folder:
        new = Path(folder) / "new.duckdb"
        with closing(connect(str(new))) as db, as_store_errors(str(target), "write to"):
            create_tables(db, str(target))
            saving = _Salvage(db)
            saving.tables(path, Path(folder) / "old.duckdb")
            saving.journal(path)
            found = saving.done()
        if not found.runs:
            raise InputError(
                f"nothing could be read of the store {str(path)!r}: {'; '.join(found.lost) or 'it has no runs'}."
            )
        DuckStore(new).close()
        new.rename(target)
    return found


def _refuse_held(path: Path) -> None:
    """Check that no other process holds a store.

    Raises:
        StoreLockedError: it does.
        StoreSchemaError: it is the file of another database, or of a newer version.
    """
    try:
        connect(str(path), read_only=True).close()
    except (StoreLockedError, StoreSchemaError):
        raise
    except StoreError:
        return


class _Salvage:
    """One salvage, into the new store behind `db`."""

    def __init__(self, db: DuckDBPyConnection) -> None:
        self._db = db
        self._rows: dict[str, tuple[int, int]] = {}
        self._lost: list[str] = []
        self._missing: dict[int, int] = {}
        """The number of lost rows by run number."""
        self._any_run = False
        """Whether rows of an unknown run are lost."""
        self._moved = 0

    def tables(self, path: Path, copy: Path) -> None:
        """Copy the readable rows of every table from a copy of the file and its log."""
        if not self._attach(path, copy):
            return
        names = self._db.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'damaged'").fetchall()
        if ("run_numbers",) not in names or ("otel_traces",) not in names:
            raise StoreSchemaError(f"{str(path)!r} is a DuckDB file but not a clawtrace store.")
        for table in _TABLES:
            if (table,) in names:
                self._table(table)
        import duckdb

        with suppress(duckdb.Error):  # what the journal repeats is then there twice, and counts once
            ((self._moved,),) = self._db.execute("SELECT moved FROM damaged.journal_state").fetchall()

    def _attach(self, path: Path, copy: Path) -> bool:
        """Attach a copy as `damaged`, with as much of its log as can be read; False where the file cannot be opened."""
        import duckdb

        shutil.copyfile(path, copy)
        log, before = Path(f"{copy}.wal"), Path(f"{path}.wal")
        if before.exists():
            shutil.copyfile(before, log)
        while True:
            try:
                self._db.execute(f"ATTACH '{str(copy).replace(chr(39), chr(39) * 2)}' AS damaged")
            except duckdb.Error as error:
                if not log.exists() or "WAL" not in str(error):
                    self._lose(f"the file cannot be opened ({_first_line(error).replace(str(copy), path.name)})")
                    return False
                place = int(found[1]) if (found := _WHERE.search(str(error))) else 0
                self._lose(f"its log `{before.name}` cannot be read from byte {place} on")
                if 0 < place < log.stat().st_size:
                    with log.open("r+b") as stream:
                        stream.truncate(place)
                else:
                    log.unlink()
            else:
                if log_is_unread(self._db, str(copy)):
                    self._lose(f"no transaction could be read from its log `{before.name}`")
                return True

    def _table(self, table: str) -> None:
        import duckdb

        try:
            ((last, count),) = self._db.execute(f"SELECT max(rowid), count(*) FROM damaged.{table}").fetchall()
        except duckdb.Error as error:
            self._lose(f"the table `{table}` cannot be read ({_first_line(error)})")
            return
        for start, end in [] if last is None else self._copy(table, 0, int(last) + 1):
            if table in _OF_RUNS:
                self._whose(table, start, end)
        ((taken,),) = self._db.execute(f"SELECT count(*) FROM {table}").fetchall()
        self._rows[table] = (taken, count - taken)

    def _copy(self, table: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Copy rows, in smaller parts where they cannot be read; yield the lost parts."""
        import duckdb

        try:
            self._db.execute(
                f"INSERT INTO {table} BY NAME SELECT * FROM damaged.{table} WHERE rowid >= {start} AND rowid < {end}"
            )
        except duckdb.Error:
            if end - start <= _ROWS:
                yield start, end
                return
            middle = start + -(-(end - start) // 2 // _ROWS) * _ROWS
            yield from self._copy(table, start, middle)
            yield from self._copy(table, middle, end)

    def _whose(self, table: str, start: int, end: int) -> None:
        """Record the runs of lost rows."""
        import duckdb

        try:
            for number, count in self._db.execute(
                f"SELECT run_no, count(*) FROM damaged.{table} WHERE rowid >= {start} AND rowid < {end} GROUP BY run_no"
            ).fetchall():
                self._missing[number] = self._missing.get(number, 0) + count
        except duckdb.Error:
            self._any_run = True

    def _lose(self, what: str) -> None:
        self._lost.append(what)
        self._any_run = True

    def journal(self, path: Path) -> None:
        """Copy acknowledged rows that are in no table."""
        groups, damaged = Journal(str(path)).whole_groups()
        if damaged:
            self._lose(f"a part of `{path.name}.journal` cannot be read")
        for number in sorted(groups):
            if number <= self._moved:
                continue
            group = groups[number]
            with transaction(self._db, str(path)) as db:
                write_numbers(db, group.numbers)
                insert_rows(db, group.spans, group.logs, group.receipts)

    def done(self) -> Salvaged:
        """Name the runs whose ids are lost, and mark those that may lack something."""
        self._db.execute(
            "INSERT INTO run_numbers SELECT DISTINCT run_no, 'salvaged-' || run_no, false FROM "
            "(SELECT run_no FROM otel_traces UNION SELECT run_no FROM otel_logs UNION SELECT run_no FROM receipts) "
            "WHERE run_no <> 0 AND run_no NOT IN (SELECT run_no FROM run_numbers)"
        )
        numbers = [row[0] for row in self._db.execute("SELECT run_no FROM run_numbers WHERE run_id <> ''").fetchall()]
        marked = numbers if self._any_run else [number for number in numbers if number in self._missing]
        ((last,),) = self._db.execute("SELECT coalesce(max(request_no), 0) FROM receipts").fetchall()
        now = time.time_ns()
        lost = [
            Receipt(number, last, now, "file", "traces", refused=self._missing.get(number, 1), reason=_WHY)
            for number in marked
        ]
        insert_rows(self._db, SpanBatch(), LogBatch(), lost)
        return Salvaged(self._rows, self._lost, len(numbers), len(marked))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip("!.")

"""Moves whole runs between stores, and deletes them: runs that a campaign reuses, and runs that are no longer needed."""

from __future__ import annotations

import gzip
import tempfile
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clawtrace.errors import InputError, StoreError
from clawtrace.model.relations import RELATIONS
from clawtrace.model.run import RunRecord, write_record
from clawtrace.store.arrow import ArrowRows
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.raw.raw_rows import RETIRED

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["copy_run", "forget_runs", "opened", "packed_run", "received_rows", "take_rows", "take_run"]

_BY_NUMBER = ("otel_traces", "otel_logs", "receipts", "run_conflicts")
"""Tables whose rows carry the number of their run, under which they are found in a store."""
_RECEIVED = "protocol <> 'file'"
"""Tells what came over the wire from what was read from logs and recordings."""


@contextmanager
def opened(path: Path) -> Iterator[DuckStore]:
    """Open another store for a while; a process can open one file once, so callers hold the lock of their own store.

    Raises:
        InputError: it cannot be opened.
    """
    try:
        found = DuckStore(path)
    except StoreError as error:
        raise InputError(str(error)) from error
    with closing(found):
        yield found


def take_run(target: DuckStore, path: Path, run_id: str, renamed: RunRecord | None) -> RunRecord | None:
    """Copy a run, its spans and its record from another store; return the record, None where the run was not announced.

    Args:
        path: the other store.
        renamed: whose id, case, model and repetition the copy gets; None leaves them.

    Raises:
        InputError: that store is `target` itself, cannot be opened, or has no such run.
        StoreError: the run cannot be written.
    """
    if path.resolve() == Path(target.path).resolve():
        raise InputError(f"the run {run_id!r} would be copied from the store that it is written to, {str(path)!r}")
    with opened(path) as source:
        if run_id not in source.run_ids():
            raise InputError(f"the store {str(path)!r} has no run {run_id!r}; `clawtrace runs` lists its runs")
        copy_run(source, target, run_id, renamed)
    return target.record(run_id if renamed is None else renamed.run_id)


def copy_run(source: DuckStore, target: DuckStore, run_id: str, renamed: RunRecord | None = None) -> None:
    """Copy what `source` holds of a run: raw rows, counts, conflicts and its record; facts are computed anew.

    A run that `target` has already is left as it is: its id is permanently unique, so that it is the same one.

    Args:
        renamed: whose id, case, model and repetition the copy gets; None leaves them.

    Raises:
        StoreError: it could not be written; nothing of it is then there.
    """
    named = run_id if renamed is None else renamed.run_id
    if named in target.run_ids():
        return
    old, new = source.run_no(run_id), target.run_no(named)
    record = source.record(run_id)
    if record is not None and renamed is not None:
        record = record._replace(
            run_id=named, case_id=renamed.case_id, model_id=renamed.model_id, repetition=renamed.repetition
        )
    with source.transaction() as reading, target.transaction() as writing:
        _copy_rows(reading, old, writing, new)
        if record is not None:
            writing.execute("INSERT INTO run_records VALUES (?, ?, ?)", [named, write_record(record), time.time_ns()])


def _copy_rows(
    reading: DuckDBPyConnection,
    old: int,
    writing: DuckDBPyConnection,
    new: int,
    clean: Callable[[str], str] | None = None,
) -> None:
    """Copy the rows of a run as columns; those of which `clean` changes a text are few, and copied one by one."""
    for table in _BY_NUMBER:
        unclean = []
        if clean is not None:
            texts = reading.execute(f"SELECT rowid, to_json(t)::VARCHAR FROM {table} AS t WHERE run_no = {old}")
            unclean = [row for row, text in texts.fetchall() if clean(text) != text]
        chosen = f"SELECT * REPLACE ({new}::BIGINT AS run_no) FROM {table} WHERE run_no = {old}"
        apart = f"rowid IN ({', '.join(map(str, unclean)) or 'NULL'})"
        writing.register("copied_rows", ArrowRows(reading.sql(f"{chosen} AND ({apart}) IS NOT TRUE")))
        writing.execute(f"INSERT INTO {table} BY NAME SELECT * FROM copied_rows")
        writing.unregister("copied_rows")
        if clean is not None and unclean:
            rows = reading.execute(f"{chosen} AND {apart}")
            from clawtrace.support.texts import cleaned

            names = ", ".join(f'"{column[0]}"' for column in rows.description or ())
            marks = ", ".join("?" * len(rows.description or ()))
            writing.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", cleaned(rows.fetchall(), clean))


def packed_run(store: DuckStore, run_id: str) -> bytes:
    """Return a run, its spans and its record, as the file of a store of its own, compressed with gzip.

    Raises:
        StoreError: it could not be written.
    """
    with tempfile.TemporaryDirectory(prefix="clawtrace-") as folder:
        path = Path(folder) / "run.duckdb"
        with closing(DuckStore(path)) as alone:
            copy_run(store, alone, run_id)
        return gzip.compress(path.read_bytes(), 1)


def take_rows(target: DuckStore, packed: bytes, run_id: str, clean: Callable[[str], str]) -> RunRecord:
    """Replace what `target` has received of a run by what another store has; return the record that is kept there.

    What was read from the run's logs stays, and so does the record of `target`.

    Args:
        target: knows the run.
        packed: what `packed_run` returned there.
        clean: is applied to every text: it takes secrets out that the other process does not know.

    Raises:
        StoreError: it is no store that this version reads, has no such run, or the rows could not be written.
    """
    with tempfile.TemporaryDirectory(prefix="clawtrace-") as folder:
        path = Path(folder) / "run.duckdb"
        try:
            path.write_bytes(gzip.decompress(packed))
        except (OSError, EOFError, zlib.error) as error:
            raise StoreError(f"the run {run_id!r} came damaged: {error}") from error
        with closing(DuckStore(path)) as source:
            record = source.record(run_id)
            if record is None:
                raise StoreError(f"the run {run_id!r} came without its record")
            with source.transaction() as reading, target.transaction() as writing:
                number = target.run_no(run_id)
                for table in _BY_NUMBER:
                    received = f" AND {_RECEIVED}" if table in ("otel_traces", "otel_logs") else ""
                    writing.execute(f"DELETE FROM {table} WHERE run_no = ?{received}", [number])
                _copy_rows(reading, source.run_no(run_id), writing, number, clean)
    return record


def received_rows(store: DuckStore, run_ids: Sequence[str]) -> dict[str, int]:
    """Return how many rows of each run came over the wire; a run that the store does not have is left out."""
    known = set(store.run_ids())
    numbers = {store.run_no(run_id): run_id for run_id in run_ids if run_id in known}
    found = dict.fromkeys(numbers.values(), 0)
    with store.transaction() as reading:
        for table in ("otel_traces", "otel_logs", "receipts"):
            rows = reading.execute(
                f"SELECT run_no, count(*) FROM {table} WHERE run_no IN (SELECT unnest(?)) AND {_RECEIVED} GROUP BY run_no",
                [list(numbers)],
            ).fetchall()
            for number, count in rows:
                found[numbers[number]] += count
    return found


def forget_runs(store: DuckStore, run_ids: Collection[str], why: str = "", *, strays_before_ns: int = 0) -> None:
    """Delete runs from a store with all their rows.

    Args:
        store: its lock is the caller's; a receiver at work knows of it (`Receiver.forget`).
        run_ids: which ones; those that it does not have are passed over.
        why: with it they are remembered as deleted, so that a late span does not make a run again.
        strays_before_ns: what belongs to no run and came before this Unix time goes, too.

    Raises:
        StoreError: they could not be taken out; all of them are then still there.
    """
    from clawtrace.store.deleted_runs import remember

    known = set(store.run_ids())
    gone = [run_id for run_id in run_ids if run_id in known]
    if not (gone or strays_before_ns):
        return
    numbers = [store.run_no(run_id) for run_id in gone]
    with store.transaction() as writing:
        for table in ("otel_logs", "receipts"):
            writing.execute(f"DELETE FROM {table} WHERE run_no = 0 AND arrival_ns < ?", [strays_before_ns])
        if gone and why:
            remember(writing, list(zip(numbers, gone, strict=True)), why, time.time_ns())
        for table in _BY_NUMBER:
            writing.execute(f"DELETE FROM {table} WHERE run_no IN (SELECT unnest(?))", [numbers])
        views = {
            row[0] for row in writing.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        }
        for table in ("run_records", "fact_state", "judge_scores", *(name for name in RELATIONS if name not in views)):
            writing.execute(f"DELETE FROM {table} WHERE run_id IN (SELECT unnest(?))", [gone])
        writing.execute(f"UPDATE run_numbers SET run_id = '{RETIRED}' WHERE run_no IN (SELECT unnest(?))", [numbers])
    store.forget_numbers(gone)

"""Whole runs, moved between stores or taken out of one: what a campaign reuses, and what nothing names any more."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clawtrace.errors import InputError, StoreError
from clawtrace.model.relations import RELATIONS
from clawtrace.model.run import RunRecord
from clawtrace.store.raw.adoption import RETIRED
from clawtrace.store.raw.deleted_runs import remember
from clawtrace.store.records import write_record

if TYPE_CHECKING:
    from clawtrace.store.duckdb import DuckStore

__all__ = ["copy_run", "forget_runs", "opened", "take_run"]

_BY_NUMBER = ("otel_traces", "otel_logs", "receipts", "run_conflicts")
"""Tables whose rows carry the number of their run, under which they are found in a store."""
_CHUNK = 2_000
"""Rows that are copied at a time."""


@contextmanager
def opened(path: Path) -> Iterator[DuckStore]:
    """Open another store for a while; a process can open one file once, so callers hold the lock of their own store.

    Raises:
        InputError: it cannot be opened.
    """
    from clawtrace.store.duckdb import DuckStore

    try:
        found = DuckStore(path)
    except StoreError as error:
        raise InputError(str(error)) from error
    try:
        yield found
    finally:
        found.close()


def take_run(target: DuckStore, path: Path, run_id: str, renamed: RunRecord | None) -> RunRecord | None:
    """Copy a run, its spans and its record from another store; return the record, None where the run was not announced.

    Args:
        target: gets the copy.
        path: the other store.
        run_id: of the run.
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
        source: where the run is.
        target: where it is copied to.
        run_id: of the run.
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
        for table in _BY_NUMBER:
            rows = reading.execute(f"SELECT * REPLACE ({new} AS run_no) FROM {table} WHERE run_no = ?", [old])
            names = ", ".join(f'"{column[0]}"' for column in rows.description or ())
            marks = ", ".join("?" * len(rows.description or ()))
            while chunk := rows.fetchmany(_CHUNK):
                writing.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", chunk)
        if record is not None:
            writing.execute("INSERT INTO run_records VALUES (?, ?, ?)", [named, write_record(record), time.time_ns()])


def forget_runs(store: DuckStore, run_ids: Collection[str], why: str = "", *, strays_before_ns: int = 0) -> None:
    """Take runs out of a store with everything that it holds of them.

    Args:
        store: its lock is the caller's; a receiver at work knows of it (`Receiver.forget`).
        run_ids: which ones; those that it does not have are passed over.
        why: with it they are remembered as deleted, so that a late span does not make a run again.
        strays_before_ns: what belongs to no run and came before this Unix time goes, too.

    Raises:
        StoreError: they could not be taken out; all of them are then still there.
    """
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

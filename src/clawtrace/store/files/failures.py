"""Messages for errors of the engine or the disk: the cause and what to do."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clawtrace.errors import StoreDamagedError, StoreError, StoreSchemaError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "as_store_errors",
    "is_of_the_store",
    "keep_unread_log",
    "log_is_unread",
    "store_error",
    "try_to_write",
]

_EMPTY_LOG_BYTES = 100
"""Bytes of a write-ahead log before its first transaction, rounded up."""

_LOG_DAMAGED = "Failure while replaying WAL"
_DAMAGED = ("not a valid DuckDB database", "Corrupt database file", "Could not read enough bytes", _LOG_DAMAGED)
_NEWER = re.compile(r"storage version number \d+, but we can only read storage versions")
_DISK = {
    "No space left on device": "the disk is full. Make room on it; what was acknowledged is not lost",
    "Disk quota exceeded": "the disk quota is used up. Make room, or have it raised; what was acknowledged is not lost",
    "File too large": "its files may not grow any more (`ulimit -f`). What was acknowledged is not lost",
    "Read-only file system": "the file system is read-only. Make it writable, or name another store with --store, such as a copy",
    "Permission denied": "this user may not write it. Change the permissions, or name another store with --store, such as a copy",
    "Too many open files": "this process has too many files open (`ulimit -n`). What was acknowledged is not lost",
    "fsync failed": "the disk does not keep what is written. Look at the system's log",
    "Input/output error": "the disk reports an input/output error. Look at the system's log",
}
"""By the system's error text, which DuckDB repeats in its messages."""
_ENGINE_STOPPED = "database has been invalidated"
_SALVAGE = "or write what can be read into another: `clawtrace store salvage {path} -o NEW`"
_MOVE_AWAY = "The file is damaged: put a copy of it back, move it away, after which a campaign runs its agents anew, "
_MOVE_LOG_AWAY = "The log is damaged: put a copy of it back, move it away, which loses what is in no other file, "


def store_error(path: str, error: Exception, doing: str = "write to") -> StoreError:
    """Return an error of DuckDB, or of the system, in words that say what to do."""
    text = str(error)
    for said, words in _DISK.items():
        if said in text:
            return StoreError(f"cannot {doing} the store {path!r}: {words}.")
    if _ENGINE_STOPPED in text:
        text = text.partition("Original error: ")[2].strip('"\n') or text
    if _NEWER.search(text):
        return StoreSchemaError(
            f"{path!r} was written by a newer DuckDB than this one: `pip install --upgrade duckdb`, or name another file with --store."
        )
    if not is_damage(text):
        return StoreError(f"cannot {doing} the store {path!r}: {text}")
    if "not a valid DuckDB" in text:
        empty = Path(path).is_file() and not Path(path).stat().st_size
        what = "is empty" if empty else "is not a DuckDB file, or its beginning is damaged"
        return StoreDamagedError(
            f"{path!r} {what}: name another file with --store, put a copy of the store back, or move it away; a campaign then "
            "runs its agents anew."
        )
    hint = (_MOVE_LOG_AWAY if _LOG_DAMAGED in text else _MOVE_AWAY) + _SALVAGE.format(path=shlex.quote(path))
    return StoreDamagedError(f"cannot {doing} the store {path!r}: {text.splitlines()[0].rstrip('!.')}. {hint}.")


def is_damage(text: str) -> bool:
    """Return whether DuckDB's words are of a file that is not DuckDB's, or not whole."""
    return any(words in text for words in _DAMAGED)


def is_of_the_store(error: Exception) -> bool:
    """Return whether an error is of the file, the disk or the engine, and so of no question."""
    import duckdb

    text = str(error)
    if isinstance(error, duckdb.TransactionException | duckdb.InternalException):  # a question may cause them as well
        return any(said in text for said in (*_DISK, _ENGINE_STOPPED, "Failed to commit"))
    return isinstance(error, duckdb.FatalException | duckdb.IOException | duckdb.ConnectionException) or is_damage(text)


def log_is_unread(db: DuckDBPyConnection, path: str) -> bool:
    """Return whether the engine took nothing of the write-ahead log of a file it has just opened.

    One whose beginning is damaged it takes for none, and writes over it; what a process wrote that was killed in its first
    commit looks the same.

    Raises:
        OSError: the log cannot be looked at.
    """
    try:
        size = Path(f"{path}.wal").stat().st_size
    except FileNotFoundError:
        return False
    read = "SELECT wal_size FROM pragma_database_size() JOIN duckdb_databases() USING (database_name) WHERE path LIKE ?"
    return size > _EMPTY_LOG_BYTES and db.execute(read, [f"%{Path(path).name}"]).fetchall() == [("0 bytes",)]


def keep_unread_log(db: DuckDBPyConnection, path: str) -> None:
    """Keep a copy of a write-ahead log that the engine will write over unread; call it before anything is written."""
    try:
        if log_is_unread(db, path):
            kept = shutil.copyfile(f"{path}.wal", f"{path}.wal.unread")
            import logging

            logger = logging.getLogger("clawtrace.store")
            logger.warning(
                "no transaction could be read from '%s.wal': if one was acknowledged, it is in %r", path, kept
            )
    except OSError as error:
        raise store_error(path, error, "copy the log of") from error


def try_to_write(path: str, size: int) -> None:
    """Write so many bytes into a file without a name next to a store.

    Raises:
        StoreError: they cannot be written.
    """
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=Path(os.path.realpath(path)).parent) as file:
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise store_error(path, error) from error


@contextlib.contextmanager
def as_store_errors(path: str, doing: str = "read") -> Iterator[None]:
    """Turn errors of DuckDB inside into `StoreError`."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise store_error(path, error, doing) from error

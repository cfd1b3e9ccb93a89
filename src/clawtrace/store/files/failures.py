"""What is said of an error of the engine or of the disk: what is in the way, and what to do about it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from clawtrace.errors import StoreError

__all__ = ["as_store_errors", "is_damage", "is_of_the_store", "store_error", "try_to_write"]

_DAMAGED = ("not a valid DuckDB database", "Corrupt database file", "Could not read enough bytes", "Corrupt WAL file")
_DISK = {
    "No space left on device": "the disk is full. Make room on it; what was acknowledged is not lost",
    "Disk quota exceeded": "the disk quota is used up. Make room, or have it raised; what was acknowledged is not lost",
    "File too large": "its files may not grow any more (`ulimit -f`). What was acknowledged is not lost",
    "Read-only file system": "the file system is read-only. Make it writable, or name another store with --store, such as a copy",
    "Permission denied": "this user may not write it. Change the permissions, or name another store with --store, such as a copy",
    "Too many open files": "this process has too many files open (`ulimit -n`). What was acknowledged is not lost",
    "Input/output error": "the disk reports an input/output error. Look at the system's log",
}
"""By what the system says, which DuckDB repeats in its messages."""
_ENGINE_STOPPED = "database has been invalidated"
_MOVE_AWAY = "The file is damaged: put a copy of it back, or move it away; a campaign then runs its agents anew"
_MOVE_LOG_AWAY = "The log is damaged: put a copy of it back, or move it away, which loses what is in no other file"


def store_error(path: str, error: Exception, doing: str = "write to") -> StoreError:
    """Return an error of DuckDB, or of the system, in words that say what to do."""
    text = str(error)
    for said, words in _DISK.items():
        if said in text:
            return StoreError(f"cannot {doing} the store {path!r}: {words}.")
    if _ENGINE_STOPPED in text:
        text = text.partition("Original error: ")[2].strip('"\n') or text
    hint = f". {_MOVE_LOG_AWAY if 'WAL file' in text else _MOVE_AWAY}." if is_damage(text) else ""
    return StoreError(f"cannot {doing} the store {path!r}: {text.rstrip('!.') if hint else text}{hint}")


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

"""The process that holds a store: DuckDB opens a file in one process only, so that one publishes its address in a file next to it.

``<store>.owner`` is written while the store is held and removed before it is let go. A process that was killed leaves
it behind; the next holder of the store replaces it, and readers pass over the file of a process that is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from clawtrace.errors import StoreError, StoreLockedError, StoreSchemaError
from clawtrace.store.files.failures import store_error
from clawtrace.support.files import whole_text_file

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "PATIENCE_SECONDS",
    "Owner",
    "command_of",
    "connect",
    "load_duckdb",
    "owner_file",
    "patiently",
    "read_owner",
    "remove_owner",
    "write_owner",
]

T = TypeVar("T")

PATIENCE_SECONDS = 5.0
"""Seconds for which opening a file that another process holds is retried."""

LOG_BYTES = 64 << 20
"""A write-ahead log of so many bytes is moved into the file, whatever else arrives."""

_STEPS_SECONDS = (0.02, 0.25)
"""First and longest pause between two tries; the system does not report when a file lock ends."""

_COMMAND_LIMIT = 120


class Owner(NamedTuple):
    """The address at which the process that holds a store answers queries."""

    address: str
    """Base URL of its HTTP port."""
    token: str
    """Every question must carry it."""
    pid: int


def owner_file(store: str | Path) -> Path:
    """Return the path of ``<store>.owner``, next to the file itself wherever links point from."""
    return Path(f"{os.path.realpath(store)}.owner")


def write_owner(store: str | Path, owner: Owner) -> Path:
    """Write ``<store>.owner`` for the user alone (mode 0600), whole or not at all, and return its path.

    The caller holds the store, so that any file there is stale.

    Raises:
        StoreError: it cannot be written.
    """
    path = owner_file(store)
    try:
        with whole_text_file(path, mode=0o600, sync=False) as stream:
            json.dump(owner._asdict(), stream)
    except OSError as error:
        raise StoreError(f"cannot write {str(path)!r}, which other commands read: {error.strerror}") from error
    return path


def remove_owner(path: Path) -> None:
    """Remove what `write_owner` wrote. The caller still holds the store, so that it is this process's own.

    One that cannot be removed does no harm: it names an address that does not answer.
    """
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def read_owner(store: str | Path) -> Owner | None:
    """Return the process that claims the store; None without such a file, or if the process has ended."""
    try:
        found = json.loads(owner_file(store).read_text("utf-8"))
        owner = Owner(str(found["address"]), str(found["token"]), int(found["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return owner if _alive(owner.pid) else None


_DATA = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".gz")
"""Ends of names of files that DuckDB reads into a database in memory when it is told to open them."""


def connect(path: str, *, read_only: bool = False) -> DuckDBPyConnection:
    """Open a DuckDB file.

    Raises:
        StoreLockedError: another process holds it; the message names that process.
        StoreSchemaError: it is the file of another database.
        StoreError: it cannot be opened or created.
    """
    import duckdb

    if Path(path).suffix.lower() in _DATA and _begins_with_text(path):
        raise StoreSchemaError(f"{path!r} is no store: a recording is given with --traces.")
    try:
        path.encode()
        opened = duckdb.connect(path, read_only=read_only, config=_settings(path))
        # The progress of a long statement would stand in what a command prints; its cursors show none.
        return opened.execute("SET enable_progress_bar = false")
    except UnicodeEncodeError as error:
        raise StoreError(f"the path of the store {path!r} is not UTF-8, as DuckDB needs it; rename it") from error
    except duckdb.Error as error:
        text = str(error)
        if "could not set lock" in text.lower():
            raise StoreLockedError(
                f"the store {path!r} is open in {_holder(path, text)}: wait until it has ended, or end it. A "
                "running `clawtrace serve` answers with --server in place of --store."
            ) from error
        if "Extension" in text:
            raise StoreSchemaError(
                f"{path!r} is the file of another database; name another file with --store."
            ) from error
        raise store_error(path, error, "open") from error


def _begins_with_text(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(12)[8:] not in (b"", b"DUCK")
    except OSError:
        return False


def _settings(path: str) -> dict[str, str | bool | int | float | list[str]]:
    """Return the settings with which DuckDB opens a file."""
    return {
        # What a process that is killed leaves to be replayed, 5 ms of CPU a megabyte; less makes row groups small (ADR 015).
        "checkpoint_threshold": f"{LOG_BYTES}B",
        # The compression of maps can be set only for the whole store (ADR 014); `schema.py` tells relations otherwise.
        # In memory DuckDB has no zstd, and would leave the texts as they are.
        "force_compression": "dict_fsst" if path == ":memory:" else "zstd",
        "preserve_insertion_order": "false",
        # A checkpoint that merges row groups holds all of their rows in memory, as they were before compression: 1 GB of a
        # blast's. Groups are merged when a small store is closed (`DuckStore.close`).
        "max_vacuum_tasks": 0,
        # A file of another database would have it fetch an extension from the network.
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        # Two sides ask at once, each on its caller's thread: DuckDB has one less than there are cores. On two cores facts
        # and insertions cost a tenth less (ADR 008).
        "threads": max(1, (os.cpu_count() or 1) - 1),
    }


def patiently(attempt: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
    """Try again while another process holds the store.

    Raises:
        StoreLockedError: the last one, when `seconds` have passed.
    """
    end = time.monotonic() + seconds
    step, longest = _STEPS_SECONDS
    while True:
        try:
            return attempt()
        except StoreLockedError:
            left = end - time.monotonic()
            if left <= 0:
                raise
            time.sleep(min(step, left))
            step = min(2 * step, longest)


def command_of(pid: int) -> str:
    """Return the command line of a process, shortened; empty where the system does not report it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    text = " ".join(word.decode("utf-8", "replace") for word in words)
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    return text if len(text) <= _COMMAND_LIMIT else f"{text[:_COMMAND_LIMIT]}…"


def _holder(path: str, text: str) -> str:
    """Return the name of the process that holds the file: from the engine's message if it has one, else from ``<store>.owner``."""
    found = re.search(r"\(PID (\d+)\)", text)
    owner = read_owner(path)
    pid = int(found[1]) if found else owner.pid if owner else None
    if pid is None:
        return "another process"
    command = command_of(pid)
    return f"process {pid} (`{command}`)" if command else f"process {pid}"


def _alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is another user's
    return True


_HELD = (signal.SIGINT, signal.SIGTERM)


def load_duckdb() -> None:
    """Import DuckDB; a signal that arrives meanwhile is delivered when that is done.

    What the handler of a signal raises inside of its initialisation, which runs Python, ends the process with SIGABRT.
    """
    if "duckdb" in sys.modules or threading.current_thread() is not threading.main_thread():
        _load()  # handlers run on the main thread only
        return
    arrived: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        del frame
        arrived.append(number)

    before = {number: signal.getsignal(number) for number in _HELD}
    ours = [number for number, handler in before.items() if callable(handler)]  # the others run no Python
    try:
        for number in ours:
            signal.signal(number, hold)
        _load()
    finally:
        for number in ours:
            signal.signal(number, before[number])
        for one in arrived:
            signal.raise_signal(one)


def _load() -> None:
    import duckdb  # noqa: F401

"""The journal of acknowledged rows that are not in the tables yet: a file next to the store, synced with every group.

A commit of DuckDB costs milliseconds however few spans it has, an append to this file a tenth of one. ``<store>.journal``
begins with a line that says which store it is of; each group after it is `_HEAD` and JSON. A last group that ends too
early, or whose checksum is wrong, was never acknowledged: nothing is appended after a group that could not be written. One
with a later group behind it was, and is damaged.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.errors import StoreDamagedError, StoreError
from clawtrace.model.raw import Batch, LogBatch, MapColumn, NestedMap, Receipt, SpanBatch, StrList
from clawtrace.store.files.failures import store_error

__all__ = ["Group", "Journal", "problem"]

_HEAD = struct.Struct("<QII")
"""Number of the group, length and CRC-32 of its JSON."""
_ZEROS = re.compile(rb"\0\0\0")
_NUMBER_BYTES = 5
"""A number has at most so many bytes that are not 0; three that are follow them, which JSON never has."""
_ORIGIN = "clawtrace journal 1 of store "
_sync = getattr(os, "fdatasync", os.fsync)
"""macOS has no `fdatasync`."""


class Group(NamedTuple):
    """The rows of one commit."""

    numbers: list[tuple[int, str]]
    """Numbers and ids of runs that are new."""
    spans: SpanBatch
    logs: LogBatch
    receipts: list[Receipt]

    @property
    def rows(self) -> int:
        """The number of its spans and log records."""
        return len(self.spans) + len(self.logs)


class Journal:
    """The file; used under the lock of the store's writing side, by the process that holds the store."""

    def __init__(self, store: str) -> None:
        self.path = Path(f"{os.path.realpath(store)}.journal")
        self._store = store
        self._file: int | None = None
        self._start = 0
        self._end = 0
        """Positions of the first and of the next group."""

    def append(self, store_id: str, number: int, group: Group) -> None:
        """Write a group; on return it survives ``kill -9``.

        Raises:
            StoreError: it could not be written, and nothing of it is left.
        """
        data = _written(group)
        try:
            file = self._open(store_id)
            try:
                _write(file, _HEAD.pack(number, len(data), zlib.crc32(data)) + data, self._end)
                _sync(file)
            except OSError:
                # When this fails too, the next group is written over what is left here.
                os.ftruncate(file, self._end)
                raise
        except OSError as error:
            raise store_error(self._store, error) from error
        self._end += _HEAD.size + len(data)

    @property
    def size(self) -> int:
        """Bytes that it has."""
        return self._end

    def exists(self) -> bool:
        """Return whether there is a file, of this process or one before it."""
        return self.path.exists()

    def clear(self) -> None:
        """Forget every group: the store has them, and passes over their numbers should they come back."""
        self._end = min(self._end, self._start)
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)

    def remove(self) -> None:
        """Remove the file, which holds nothing that the store has not."""
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def groups(self, store_id: str, last: int) -> Iterator[tuple[int, Group]]:
        """Yield (number, group) of what a process that was killed left behind.

        Args:
            last: number of the last group in its tables.

        Raises:
            StoreError: the file is of another store, damaged, or cannot be read.
        """
        data = self._bytes()
        if data is None:
            return
        origin, newline, rest = data.partition(b"\n")
        expected = f"{_ORIGIN}{store_id}\n".encode()
        if expected.startswith(data) or not data.strip(b"\0"):
            return  # not even its first line was written
        if origin + newline != expected:
            raise StoreError(
                f"{str(self.path)!r} holds spans that another store, or another version of clawtrace, acknowledged and "
                "did not store: put that store back, or remove this file if they are not needed."
            )
        yield from self._read(rest, last)

    def whole_groups(self) -> tuple[dict[int, Group], bool]:
        """Return every group that can be read, by number, of whatever store; and whether anything else is in the file.

        Raises:
            StoreError: the file cannot be read.
        """
        data = self._bytes() or b""
        found = {start: (number, body) for number, start, body in _later(data, 0)}
        known = (data.find(b"\n") + 1) + sum(_HEAD.size + len(body) for _, body in found.values())
        return {number: _read_group(body) for number, body in found.values()}, known != len(data)

    def _bytes(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"cannot read {str(self.path)!r}: {error.strerror or error}") from error

    def _read(self, data: bytes, last: int) -> Iterator[tuple[int, Group]]:
        place = 0
        while (found := _group_at(data, place)) and found[0] <= last + 1:
            number, body = found
            place += _HEAD.size + len(body)
            last = max(last, number)
            yield number, _read_group(body)
        if any(number > last for number, _, _ in _later(data, place)):
            raise StoreDamagedError(
                f"{str(self.path)!r} is damaged: the acknowledged spans in it cannot be read, and none was imported. Put a copy of it "
                "back, move it away, which loses all spans in it, or write what can be read into another store: "
                f"`clawtrace store salvage {shlex.quote(self._store)} -o NEW`."
            )

    def _open(self, store_id: str) -> int:
        """Return the file, with its first line."""
        if self._file is None:
            file = os.open(self.path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                origin = f"{_ORIGIN}{store_id}\n".encode()
                _write(file, origin, 0)
            except OSError:
                os.close(file)
                raise
            self._file, self._start, self._end = file, len(origin), len(origin)
        return self._file


def _group_at(data: bytes, place: int) -> tuple[int, bytes] | None:
    """Return the number and the JSON of the group that begins at `place`; None where no whole one does."""
    if place + _HEAD.size > len(data):
        return None
    number, length, checksum = _HEAD.unpack_from(data, place)
    body = data[place + _HEAD.size : place + _HEAD.size + length]
    # A disk may leave zeros where a group was to be; they would be one without a text.
    return (number, body) if 0 < length == len(body) and zlib.crc32(body) == checksum else None


def _later(data: bytes, place: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (number, where, JSON) of each whole group behind `place`, wherever it begins; some twice."""
    for zeros in _ZEROS.finditer(data, place):
        for start in range(max(zeros.start() - _NUMBER_BYTES, place), zeros.start() + 1):
            if found := _group_at(data, start):
                yield found[0], start, found[1]


def _write(file: int, data: bytes, place: int) -> None:
    """Write all of `data`; a disk that is nearly full takes a part."""
    left = memoryview(data)
    while left:
        done = os.pwrite(file, left, place)
        left, place = left[done:], place + done


def _written(group: Group) -> bytes:
    """Return a group as JSON.

    Raises:
        StoreError: a text is no valid Unicode.
    """
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json([group.numbers, vars(group.spans), vars(group.logs), group.receipts])
    except PydanticSerializationError as error:
        raise StoreError(f"a group of spans cannot be written: {error}") from error


def _read_group(data: bytes) -> Group:
    from pydantic_core import from_json

    numbers, spans, logs, receipts = from_json(data, cache_strings="keys")
    return Group(
        [(number, run_id) for number, run_id in numbers],
        _read_batch(SpanBatch(), spans),
        _read_batch(LogBatch(), logs),
        [Receipt(*receipt) for receipt in receipts],
    )


def _read_batch(batch: Batch, columns: dict[str, Any]) -> Batch:
    for name, empty in vars(batch).items():
        column = columns[name]
        if isinstance(empty, NestedMap):
            column = NestedMap(column["offsets"], MapColumn(**column["maps"]))
        elif isinstance(empty, MapColumn | StrList):
            column = type(empty)(**column)
        setattr(batch, name, column)
    return batch


_INTEGERS = {
    **dict.fromkeys(("start_ns", "end_ns", "time_ns", "observed_ns"), 64),
    **dict.fromkeys(("flags", "dropped_attributes", "dropped_events", "dropped_links", "severity_number"), 63),
    **dict.fromkeys(("arrival_ns", "request_no", "run_no"), 63),
}
"""Columns of whole numbers, and how many bits they have."""


def problem(batch: SpanBatch | LogBatch) -> str:
    """Return why the tables would refuse a batch; empty when they take it.

    A span that was acknowledged is not sent again, so that this is found before. Decoding leaves none of it.
    """
    for name, column in vars(batch).items():
        rows = len(column) if isinstance(column, list) else len(column.offsets) - 1
        if rows != len(batch):
            return f"column `{name}` has {rows} rows of {len(batch)}"
        if isinstance(column, list):
            if rows and name in _INTEGERS and not _in_range(column, 2 ** _INTEGERS[name]):
                return f"column `{name}` has a value that is not a whole number in its range"
            continue
        if isinstance(column, NestedMap):
            if column.offsets[-1] != len(column.maps.offsets) - 1:
                return f"the offsets of `{name}` do not fit"
            column = column.maps
        if column.offsets[-1] != len(column.values):
            return f"the offsets of `{name}` do not fit"
        if isinstance(column, MapColumn) and (key := _doubled(column)):
            return f"`{name}` has the duplicate key {key!r}"
    return ""


def _in_range(numbers: list[int], limit: int) -> bool:
    try:
        return min(numbers) >= 0 and max(numbers) < limit
    except TypeError:
        return False


def _doubled(column: MapColumn) -> str:
    """Return a key that occurs twice in one map; empty where none does."""
    for start, end in pairwise(column.offsets):
        keys = column.keys[start:end]
        if len(set(keys)) != len(keys):
            return next(key for key in keys if keys.count(key) > 1)
    return ""

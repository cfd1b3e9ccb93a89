"""Results that wait for the end of a campaign, packed and in a file: of thousands only what is read again is in memory.

Verdicts share what was read of all runs that were judged together, and hold it for as long as one of them lives. A packed
result holds nothing but its own, in some hundred bytes a verdict: most of the text is in the results before it too.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
import weakref
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from clawtrace.model.verdict import RunResult, Standing, UnreadVerdicts, Verdict
from clawtrace.verdicts.reading.result_data import verdict_data, verdict_of

__all__ = ["Packer"]

_T = TypeVar("_T")

_WORDS_BYTES = 32 << 10
"""As far as zlib looks back."""
_LEVEL = 6
"""Of compression."""
_UNPACKED = 64
"""So many of the results that were read last are kept unpacked."""


class _UnnamedFile:
    """Texts in a file without a name, which goes with the last who can read it, or with the process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  # closed by its finalizer
        self._number = file.fileno()
        self._end = 0
        self._writing = threading.Lock()
        weakref.finalize(self, file.close)

    def append(self, text: bytes) -> int:
        """Write a text, and return where it begins.

        Raises:
            OSError: there is no room.
        """
        with self._writing:
            at, written = self._end, 0
            while written < len(text):
                written += os.pwrite(self._number, text[written:], at + written)
            self._end += written
        return at

    def read(self, at: int, size: int) -> bytes:
        """Return `size` bytes from `at` on."""
        return os.pread(self._number, size, at)


class _Packed(NamedTuple):
    """Verdicts and totals of one run, as compressed JSON."""

    file: _UnnamedFile
    at: int
    """Where they begin in the file."""
    size: int
    words: bytes
    """What the text is compressed against."""
    text: bytes = b""
    """The text itself, where the file had no room."""


class _RunVerdicts(NamedTuple):
    verdicts: list[dict[str, Any]]
    totals: dict[str, Any]


class Packer:
    """Packs the results of one campaign, on whichever thread.

    Args:
        folder: on whose disk the results wait.
    """

    def __init__(self, folder: Path) -> None:
        self._file = _UnnamedFile(folder)
        self._words = b""
        self._standings: dict[tuple[Standing, ...], tuple[Standing, ...]] = {}

    def packed(self, result: RunResult) -> RunResult:
        """Return the same result, whose verdicts and totals are unpacked when they are read."""
        verdicts = [verdict_data(verdict) for verdict in result.verdicts]
        text = json.dumps([verdicts, dict(result.totals)], default=str).encode()
        words = self._words
        if len(words) < _WORDS_BYTES:
            words = self._words = (text + words)[:_WORDS_BYTES]
        squeeze = zlib.compressobj(level=_LEVEL, zdict=words)
        packed = self._put(squeeze.compress(text) + squeeze.flush(), words)
        standings = self._standings.setdefault(result.standings, result.standings)
        return result._replace(
            verdicts=_PackedVerdicts(standings, packed),
            totals=_PackedTotals(packed),
            run_status=_shared(result.run_status),
            closed_by=_shared(result.closed_by),
            facts_state=tuple(map(_shared, result.facts_state)),
        )

    def _put(self, text: bytes, words: bytes) -> _Packed:
        with contextlib.suppress(OSError):
            return _Packed(self._file, self._file.append(text), len(text), words)
        return _Packed(self._file, 0, len(text), words, text)


def _shared(value: _T) -> _T:
    """Return a value that occurs in many results; a text is the same object in all of them."""
    return sys.intern(value) if isinstance(value, str) else value  # type: ignore[return-value]


class _PackedVerdicts(UnreadVerdicts):
    """The verdicts of a packed result."""

    __slots__ = ("_packed",)

    def __init__(self, standings: tuple[Standing, ...], packed: _Packed) -> None:
        super().__init__(standings)
        self._packed = packed

    def made(self, number: int) -> Verdict:
        """Unpack one verdict."""
        return verdict_of(_read(self._packed).verdicts[number])


class _PackedTotals(Mapping[str, Any]):
    """The totals of a packed result."""

    __slots__ = ("_packed",)

    def __init__(self, packed: _Packed) -> None:
        self._packed = packed

    def __getitem__(self, name: str) -> Any:
        return _read(self._packed).totals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_read(self._packed).totals)

    def __len__(self) -> int:
        return len(_read(self._packed).totals)


@lru_cache(_UNPACKED)
def _read(packed: _Packed) -> _RunVerdicts:
    widen = zlib.decompressobj(zdict=packed.words)
    text = packed.text or packed.file.read(packed.at, packed.size)
    return _RunVerdicts(*json.loads(widen.decompress(text) + widen.flush()))

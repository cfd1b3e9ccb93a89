"""Results that wait for the end of a campaign, packed: of thousands of runs only what is read again is unpacked.

Verdicts share what was read of all runs that were judged together, and hold it for as long as one of them lives. A packed
result holds nothing but its own, in some hundred bytes a verdict: most of the text is in the results before it too.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from clawtrace.campaign.stored_results import verdict_data, verdict_of
from clawtrace.model.verdict import RunResult, Standing, UnreadVerdicts, Verdict

__all__ = ["Packer"]

_WORDS_BYTES = 32 << 10
"""As far as zlib looks back."""
_LEVEL = 6
"""Of compression."""
_UNPACKED = 64
"""So many of the results that were read last are kept unpacked."""


class _Packed(NamedTuple):
    """Verdicts and totals of one run, as compressed JSON."""

    text: bytes
    words: bytes
    """What the text is compressed against."""


class _Read(NamedTuple):
    verdicts: list[dict[str, Any]]
    totals: dict[str, Any]


class Packer:
    """Packs the results of one campaign, on whichever thread."""

    def __init__(self) -> None:
        self._words = b""

    def packed(self, result: RunResult) -> RunResult:
        """Return the same result, whose verdicts and totals are unpacked when they are read."""
        verdicts = [verdict_data(verdict) for verdict in result.verdicts]
        text = json.dumps([verdicts, dict(result.totals)], default=str).encode()
        words = self._words
        if len(words) < _WORDS_BYTES:
            words = self._words = (text + words)[:_WORDS_BYTES]
        squeeze = zlib.compressobj(level=_LEVEL, zdict=words)
        packed = _Packed(squeeze.compress(text) + squeeze.flush(), words)
        return result._replace(verdicts=_PackedVerdicts(result.standings, packed), totals=_PackedTotals(packed))


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
def _read(packed: _Packed) -> _Read:
    widen = zlib.decompressobj(zdict=packed.words)
    return _Read(*json.loads(widen.decompress(packed.text) + widen.flush()))

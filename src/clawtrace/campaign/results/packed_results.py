"""Results that wait for the end of a campaign, compressed: with 20 assertions a run takes some 8 KB instead of 70.

Verdicts share what was read of all runs that were judged together, and hold it for as long as one of them lives. A packed
result holds nothing but its own.
"""

from __future__ import annotations

import json
import zlib
from functools import lru_cache
from typing import Any

from clawtrace.model.verdict import RunResult, Standing, UnreadVerdicts, Verdict
from clawtrace.verdicts.reading.result_data import verdict_data, verdict_of

__all__ = ["packed"]


def packed(result: RunResult) -> RunResult:
    """Return the same result, whose verdicts are unpacked when they are read."""
    text = json.dumps([verdict_data(verdict) for verdict in result.verdicts], default=str)
    verdicts = _PackedVerdicts(result.standings, zlib.compress(text.encode()))
    return result._replace(verdicts=verdicts, totals=dict(result.totals))


class _PackedVerdicts(UnreadVerdicts):
    """The verdicts of a packed result."""

    __slots__ = ("_text",)

    def __init__(self, standings: tuple[Standing, ...], text: bytes) -> None:
        super().__init__(standings)
        self._text = text

    def made(self, number: int) -> Verdict:
        """Unpack one verdict."""
        return verdict_of(_read(self._text)[number])


@lru_cache(64)
def _read(text: bytes) -> list[dict[str, Any]]:
    """Return the verdicts of a packed result; those that were read last are kept."""
    return list(json.loads(zlib.decompress(text)))

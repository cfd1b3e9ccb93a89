"""When a line was written: every way in which logs write it, as nanoseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = ["Clock", "nanoseconds"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**62


def nanoseconds(value: Any) -> int:
    """Return a time as nanoseconds since the epoch: ISO 8601, or a number of seconds, milli-, micro- or nanoseconds.

    0 where it is none of these. A time without a zone is taken as UTC.
    """
    if isinstance(value, bool):
        return 0
    if isinstance(value, str):
        text = value.strip()
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            try:
                value = float(text)
            except ValueError:
                return 0
        else:
            when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
            return max((when - _EPOCH) // timedelta(microseconds=1) * 1000, 0)
    if not isinstance(value, int | float) or not 0 < value < _LARGEST:
        return 0
    # Seconds reach 1e11 in the year 5138; milliseconds passed it in 1973, and so on.
    scale = next((scale for limit, scale in ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3)) if value < limit), 1)
    return int(value * scale) if isinstance(value, int) else round(value * scale)


class Clock:
    """Times of the lines of one file, which were written one after the other.

    Logs write seconds or milliseconds: of lines of the same time the later one is later all the same. Where a line
    has no time, nothing is known of its place among others.
    """

    def __init__(self) -> None:
        self._last = 0

    def at(self, value: Any) -> int:
        """Return the time of the next line in nanoseconds; 0 where it has none."""
        stated_ns = nanoseconds(value)
        if stated_ns == 0:
            return 0
        self._last = max(stated_ns, self._last + 1)
        return self._last

"""How numbers are written for people: tokens, money, time. Unknown is `?`, a lower bound carries `≥`, an upper one `≤`, never a made-up 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

__all__ = [
    "UNKNOWN",
    "amount",
    "beside",
    "between",
    "cost_of",
    "count",
    "dollars",
    "duration",
    "listed",
    "tokens_of",
    "total_of",
    "utc_text",
]

UNKNOWN = "?"


def count(number: int | None) -> str:
    """Return a whole number with thousands separators."""
    return UNKNOWN if number is None else f"{number:,}"


def amount(number: int, thing: str) -> str:
    """Return a whole number with what it counts, for example ``1 span`` or ``2 spans``."""
    return f"{count(number)} {thing}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first of some names, and how many more there are: ``a, b and 3 more``."""
    more = f" and {count(len(names) - most)} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def utc_text(when: datetime) -> str:
    """Return a moment as files have it: ISO 8601 in UTC, with milliseconds."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def dollars(amount: float | None) -> str:
    """Return US dollars as a decimal: two places from one dollar on, four below, two significant digits for the smallest."""
    if amount is None:
        return UNKNOWN
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    places = 4 if amount >= 0.0001 else 1 - math.floor(math.log10(amount))
    return f"${amount:.{places}f}"


def duration(milliseconds: float | None) -> str:
    """Return a duration as people say it: `12 ms`, `9.8 s`, `4 min 12 s`, `1 h 21 min`."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms" if milliseconds >= 1 or milliseconds == 0 else f"{milliseconds:.2f} ms"
    if milliseconds < 119_950:
        return f"{milliseconds / 1000:.1f} s"
    unit, greater, less = (1_000, "min", "s") if milliseconds < 3_599_500 else (60_000, "h", "min")
    whole, rest = divmod(round(milliseconds / unit), 60)
    return f"{whole:,} {greater}" + (f" {rest} {less}" if rest else "")


def beside(value: float, *bounds: float, written: str = ".2f") -> str:
    """Return a number with as many digits as keep it on its side of each bound: ``0.698``, and not 0.70, beside 0.7.

    A rounded figure never contradicts what was decided about the number. Page: `beside` in `format.ts`.

    Args:
        written: the fewest digits, and how they are written.
    """
    digits, style = int(written[1:-1]), written[-1]
    for more in range(digits, 18):
        text = f"{value:.{more}{style}}"
        if all(_side(float(text), bound) == _side(value, bound) for bound in bounds):
            return text
    return repr(value)


def _side(value: float, bound: float) -> int:
    return 0 if math.isclose(value, bound, rel_tol=1e-12) else 1 if value > bound else -1


def between(low: float | None, high: float | None, written: Callable[[Any], str] = count) -> str:
    """Return a number that lies between two bounds, such as ``2 to 3``, or ``≥2`` where nothing bounds it above."""
    if high is None:
        return f"≥{written(low)}" if low else UNKNOWN
    most = written(high)
    if low is None or written(low) == most:
        return most
    return f"{written(low)} to {most}" if low else f"≤{most}"


def total_of(totals: Mapping[str, Any], name: str) -> str:
    """Return a total of a run: the number, or between which it lies."""
    if (known := totals.get(name)) is not None:
        return count(known)
    return between(totals.get(f"{name}_low"), totals.get(f"{name}_high"))


def tokens_of(totals: Mapping[str, Any]) -> str:
    """Return input and output tokens of a run together: the number, or between which it lies."""
    high = [totals.get(f"{side}_tokens_high") for side in ("input", "output")]
    low = sum(totals.get(f"{side}_tokens_low") or 0 for side in ("input", "output"))
    return between(low, None if None in high else sum(filter(None, high)))


def cost_of(totals: Mapping[str, Any]) -> str:
    """Return the cost of a run: the number, or between which it lies; `?` where no call has a price."""
    if totals.get("cost_usd") is not None:
        return dollars(totals["cost_usd"])
    return between(totals.get("cost_low"), totals.get("cost_high"), dollars)

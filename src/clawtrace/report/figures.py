"""How numbers are written for people: tokens, money, time. Unknown is `?`, a lower bound carries `≥`, an upper one `≤`, never a made-up 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["UNKNOWN", "amount", "cost_of", "count", "dollars", "duration", "tokens_of"]

UNKNOWN = "?"


def count(number: int | None) -> str:
    """Return a whole number with thousands separators."""
    return UNKNOWN if number is None else f"{number:,}"


def amount(number: int, thing: str) -> str:
    """Return a whole number with what it counts, for example ``1 span`` or ``2 spans``."""
    return f"{count(number)} {thing}{'' if number == 1 else 's'}"


def dollars(amount: float | None) -> str:
    """Return US dollars as a decimal: two places from one dollar on, four below, two significant digits for the smallest."""
    if amount is None:
        return UNKNOWN
    if amount >= 1 or amount == 0:
        return f"${amount:,.2f}"
    places = 4 if amount >= 0.0001 else 1 - math.floor(math.log10(amount))
    return f"${amount:.{places}f}"


def duration(milliseconds: float | None) -> str:
    """Return a duration in the unit that reads best: ms, s, or minutes and seconds."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms" if milliseconds >= 1 or milliseconds == 0 else f"{milliseconds:.2f} ms"
    seconds = milliseconds / 1000
    if seconds < 119.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest:02d} s"


def tokens_of(totals: Mapping[str, Any]) -> str:
    """Return input and output tokens of a `run_totals` row, together; a lower bound when some calls do not know them."""
    known = [number for side in ("input", "output") if (number := totals.get(f"{side}_tokens")) is not None]
    if len(known) == 2:
        return count(sum(known))
    low = sum(totals.get(f"{side}_tokens_low") or 0 for side in ("input", "output"))
    return f"≥{count(low)}" if low else UNKNOWN


def cost_of(totals: Mapping[str, Any]) -> str:
    """Return the cost of a `run_totals` row; a bound when some calls have no price, or cached tokens are unknown."""
    low, high = totals.get("cost_low"), totals.get("cost_high")
    if high is not None:
        return f"≤{dollars(high)}" if low is not None and low < high else dollars(high)
    return f"≥{dollars(low)}" if low and totals.get("priced_calls") else UNKNOWN

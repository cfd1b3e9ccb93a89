"""Attempts at tools as a count: names and outcomes, and what the sentence says of them."""

from __future__ import annotations

from clawtrace.assertions.forms.bounds import interval
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.form import Row
from clawtrace.assertions.forms.where import Where, both

__all__ = ["NOT_BLOCKED", "attempts", "split"]

_OUTCOMES = {
    "ok": "r.outcome = 'ok'",
    "failed": "r.outcome = 'error'",
    "blocked": "r.outcome = 'blocked'",
    "of unknown outcome": "r.outcome IS NULL",
}

_SHOWN = """coalesce(r.name, '(tool without a name)') || ': ' || coalesce(r.outcome, 'how it ended is unknown')
         || CASE WHEN r.error IS NULL THEN '' ELSE ': ' || r.error END"""

NOT_BLOCKED = Where(
    "CASE WHEN r.outcome = 'blocked' THEN FALSE WHEN r.outcome IS NULL THEN NULL ELSE TRUE END", columns=("outcome",)
)
"""An attempt that nothing denied."""


def attempts(
    named: Where, *, min: int | None = None, max: int | None = None, of: str, noun: str = "attempt",
    count_blocked: bool = True, everywhere: bool = False,
) -> Count:  # fmt: skip
    """Return the count of attempts at tools.

    Args:
        named: the condition on their names.
        min: fewest.
        max: most.
        of: what follows the noun in the sentence.
        noun: what they are called.
        count_blocked: whether a denied attempt counts.
        everywhere: whether work that a timer started is looked at, too.
    """
    where = named if count_blocked else both(named, NOT_BLOCKED)
    return Count(
        "every_tool" if everywhere else "run_tools",
        (CountedRows(where, min, max, noun, of),),
        parts=_OUTCOMES,
        label="r.name",
        named=named if named.columns else None,
        shown=_SHOWN,
    )


def split(row: Row, noun: str = "time") -> str:
    """Say the attempts: "3 times (1 ok, 2 blocked)", "1 to 2 times (1 ok)"."""
    said = ", ".join(f"{row[f'part_{n}']} {word}" for n, word in enumerate(_OUTCOMES) if row[f"part_{n}"])
    return f"{interval(row['low'], row['high'], noun)}{f' ({said})' if said else ''}"

"""The form `share`: at least a share of the rows meets a condition; a quantile of a number is within a bound likewise.

It is decided from two counts: of the rows that meet the condition, and of those that do not. The least share has the fewest of
the one and the most of the other. Where no row is certain there is no share, and nothing is answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.form import Outcome, Row
from clawtrace.assertions.forms.sources import Source
from clawtrace.assertions.forms.where import Where

__all__ = ["Share", "share"]

# share × number of rows in binary floating point may be off by its last bits.
_ROUNDING = "1e-9"


@dataclass(frozen=True)
class Share(Count):
    """The first number as a share of both together."""

    least: float = 1.0
    """Share that is enough, above 0 up to 1."""

    def actual(self, row: Row) -> Any:
        """Return how many rows meet the condition and how many do not, as intervals, and the greatest number."""
        found = {"within": [row["low"], row["high"]], "beyond": [row["low_not"], row["high_not"]]}
        return found | ({"largest": row["largest"]} if self.greatest else {})

    def sentence(self, outcome: Outcome) -> str:
        """Say the share against the one that is enough."""
        row, one = outcome.row, self.tallies[0]
        open_ones = row["seen"] - row["low"] - row["low_not"]
        unknown = "" if row["high"] == row["low"] else f", {open_ones or 'others'} unknown"
        asked = "all of them" if self.least == 1 else f"a share of {self.least:g}"
        return f"{row['low']} of {plural(row['seen'], one.noun)}{one.of}{unknown}, expected {asked}."


def share(source: str | Source, where: Where, least: float, *, noun: str, of: str = "", **more: Any) -> Share:
    """Return the question whether at least a share of the rows meets a condition.

    Args:
        source: what is counted.
        where: the condition.
        least: the share that is enough.
        noun: what a row is called.
        of: what follows the noun, such as " took at most 3 ms".
        more: what `Count` takes besides.
    """
    beyond = where._replace(sql=f"NOT ({where.sql})")
    enough = f"{least:.17e}"  # without a power of ten it would be a decimal in some stores
    worst = f"g.low >= {enough} * (g.low + g.high_not) - {_ROUNDING}"
    best = f"g.high < {enough} * (g.high + g.low_not) - {_ROUNDING}"
    # Without a bound of the rows that may be missing, one bad row still decides where all must be good.
    bad = " OR g.low_not > 0" if least == 1 else ""
    return Share(
        source,
        (CountedRows(where, noun=noun, of=of), CountedRows(beyond, key="_not")),
        decision=f"CASE WHEN {best}{bad} THEN FALSE WHEN {worst} THEN TRUE ELSE NULL END",
        least=least,
        needs_row=True,
        **more,
    )

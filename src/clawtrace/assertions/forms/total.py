"""The form `sum`: what a run used altogether, within bounds.

The sums of a run are in `run_totals`, as the least over what is certain and the most over everything that the spans allow;
the same texts decide counts that need no condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clawtrace.assertions.forms.bounds import all_sql, decide_sql, interval, numbers, words
from clawtrace.assertions.forms.form import Form, Outcome, Row
from clawtrace.assertions.forms.where import is_open
from clawtrace.model.query import Query

__all__ = ["Sum", "Total"]


class Total(NamedTuple):
    """One sum that is asked for."""

    low: str
    """SQL over ``t``, the run's row of `run_totals`; never NULL."""
    high: str
    """The same; NULL where nothing bounds it."""
    max: float
    noun: str = "token"
    key: str = ""
    """Tells its columns from those of other sums: ``low<key>``, ``high<key>``."""

    @classmethod
    def of(cls, *columns: str, **more: Any) -> Total:
        """Return the sum of columns of `run_totals`, each with ``_low`` and ``_high``."""
        low, high = (" + ".join(f"t.{name}_{side}" for name in columns) for side in ("low", "high"))
        return cls(low, high, **more)


@dataclass(frozen=True)
class Sum(Form):
    """Sums are compared; every one of them must be at most its bound."""

    fact: str
    totals: tuple[Total, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    """More columns of the answer, SQL over ``t``."""
    joins: str = ""
    """SQL that joins what the sums or columns need to ``t``."""
    settles: bool = False
    """Whether nothing is answered while a run is open: a span that comes later may tell of less."""
    absent: str = "FALSE"
    """SQL over ``t``: whether nothing at all was recorded of it, so that nothing is answered."""
    shown: Query | None = None
    """The query of `evidence`."""

    def query(self) -> Query:
        """Compare each sum with its bounds."""
        keys = [one.key for one in self.totals]
        decided = [decide_sql(f"g.low{key}", f"g.high{key}", None, f":max{key}") for key in keys]
        names = [f"{side}{key}" for key in keys for side in ("low", "high")] + [*self.columns, "absent"]
        read = [f"{one.low} AS low{one.key}, {one.high} AS high{one.key}" for one in self.totals]
        read += [f"{sql} AS {name}" for name, sql in self.columns.items()] + [f"{self.absent} AS absent"]
        still = f" OR {is_open('g.run_id')}" if self.settles else ""
        return Query(
            f"""
SELECT g.run_id AS run_id, CASE WHEN g.absent{still} THEN NULL ELSE {all_sql(decided)} END AS holds, {", ".join(f"g.{name} AS {name}" for name in names)}
FROM (
  SELECT t.run_id AS run_id, {", ".join(read)}
  FROM run_totals AS t
  JOIN selected_runs AS s ON s.run_id = t.run_id
  {self.joins}
) AS g
""",
            {f"max{one.key}": one.max for one in self.totals},
        )

    def evidence(self) -> Query | None:
        """Return what the assertion shows."""
        return self.shown

    def actual(self, row: Row) -> Any:
        """Return each sum, or its bounds."""
        return numbers(row, (one.key for one in self.totals), "sum")

    def sentence(self, outcome: Outcome) -> str:
        """Return each sum with its bounds in words."""
        row = outcome.row
        said = "; ".join(
            f"{interval(row[f'low{one.key}'], row[f'high{one.key}'], one.noun)}, expected {words(None, one.max)}"
            for one in self.totals
        )
        return f"{said[0].upper()}{said[1:]}."

"""The form `value`: one value of the run meets a condition, such as its answer, its exit code or its status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from clawtrace.assertions.forms.form import Form, Row
from clawtrace.assertions.forms.where import among
from clawtrace.model.query import Query, Resolve, Scalar

__all__ = ["Value"]


@dataclass(frozen=True)
class Value(Form):
    """A column of `runs` is looked at; NULL is open, and so is one that `doubts` names."""

    column: str
    items: Callable[[str], Iterable[int]] | None = None
    """Decides a text: ``(0,)`` it is right, ``()`` it is not, ``(1,)`` it cannot be read, as where parts were redacted."""
    equals: Scalar = None
    """The required value, if no text decides."""
    first: str = ""
    """SQL over ``r`` that answers before the value does: true, false, or NULL where the value answers."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """More columns of the answer, SQL over ``r``."""
    asked: Literal["traced", "answered", "every"] = "traced"
    """Which runs are asked: those with a trace, also those whose runner knows the value (`Assertion.asks_answer`), or every one."""
    shown: Query | None = None
    """The query of `evidence`."""

    @property
    def fact(self) -> str:  # type: ignore[override]
        """The column."""
        return f"runs.{self.column}"

    def resolve(self) -> Sequence[Resolve]:
        """Decide once per distinct text."""
        return () if self.items is None else (Resolve("right_values", "runs", self.column, self.items),)

    def query(self) -> Query:
        """Check the value."""
        value = f"r.{self.column}"
        right = f"{value} = :equals"
        if self.items is not None:
            right = f"CASE WHEN {value} IN (SELECT m.value FROM right_values AS m WHERE m.item = 1) THEN NULL ELSE {among(value, 'right_values')} END"
        more = "".join(f", {sql} AS {name}" for name, sql in self.columns.items())
        first = f"WHEN ({self.first}) THEN TRUE WHEN ({self.first}) = FALSE THEN FALSE " if self.first else ""
        asked = {
            "traced": "t.run_id IS NOT NULL",
            "answered": f"t.run_id IS NOT NULL OR {value} IS NOT NULL",
            "every": "TRUE",
        }
        return Query(
            f"""
SELECT s.run_id AS run_id, {value} AS value{more},
       CASE {first}WHEN d.run_id IS NOT NULL THEN NULL ELSE {right} END AS holds
FROM selected_runs AS s
LEFT JOIN runs AS r ON r.run_id = s.run_id
LEFT JOIN run_totals AS t ON t.run_id = s.run_id
LEFT JOIN (
  SELECT DISTINCT b.run_id AS run_id FROM doubts AS b WHERE b.relation = 'runs' AND b.column_name = '{self.column}'
) AS d ON d.run_id = s.run_id
WHERE {asked[self.asked]}
""",
            {} if self.items is not None else {"equals": self.equals},
        )

    def evidence(self) -> Query | None:
        """Return what the assertion shows."""
        return self.shown

    def actual(self, row: Row) -> Any:
        """Return the value."""
        return row["value"]

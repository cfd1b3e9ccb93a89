"""A form of question: what it reads, how it is decided in every world that the spans allow, and how it is said.

A verdict is what holds in every world: an answer is True where it holds in all of them, False where it holds in none, and
None otherwise (spec: certain-and-possible.md §2). A form writes that once for all assertions that ask in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from clawtrace.model.query import Query, Resolve

__all__ = ["Form", "Outcome", "Row"]

Row = Mapping[str, Any]
"""One row of a query's answer, by column name."""


class Outcome(NamedTuple):
    """The answer for one run."""

    run_id: str
    holds: bool | None
    """None: it holds in some worlds that the spans allow, and not in others."""
    missing: str = ""
    """If `holds` is None, the unknown fact, as ``relation`` or ``relation.column``."""
    row: Row = MappingProxyType({})
    """Everything the query returned for the run; sentences read it."""
    absent: bool = False
    """Whether nothing at all was recorded of what is asked."""


class Form(ABC):
    """A question in one of the five forms."""

    fact: str
    """What is asked of, as ``relation`` or ``relation.column``: `Outcome.missing` of an answer that is open."""

    def resolve(self) -> Sequence[Resolve]:
        """Return the predicates on text that the query needs, in the order in which they are bound."""
        return ()

    @abstractmethod
    def query(self) -> Query:
        """Return the question as SQL: exactly one row for each selected run that has a trace, a row of ``run_totals``.

        Columns: ``run_id``; ``holds`` (boolean, NULL: open); optionally ``absent`` (`Outcome.absent`), ``by_function``
        (TRUE: `details` and `decide` must answer), and what sentences need.
        """

    def details(self) -> Query | None:
        """Return the rows that `decide` needs; ``selected_runs`` then holds only the runs that are left to it."""
        return None

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Answer for one run that SQL could not: its row of `query` and its rows of `details`, as ordered there."""
        raise NotImplementedError

    def evidence(self) -> Query | None:
        """Return SQL for the spans that decide: ``run_id, span_id, why, rank, reason`` for the selected runs.

        ``span_id`` is NULL for a fact known only from messages; ``why`` is a short text; rank 1 is the most significant;
        ``reason`` is why the row, or what is asked of it, is in doubt, or why rows may exist that nothing records; else NULL.
        """
        return None

    def actual(self, row: Row) -> Any:
        """Return what was found, as a JSON value; None when unknown."""
        del row
        return None

    def sentence(self, outcome: Outcome) -> str:
        """Return one plain sentence that says what was found against what was asked; it is true of each answer.

        Forms that know too little of what they are asked leave it to the assertion.
        """
        raise NotImplementedError

    def outcome(self, row: Row) -> Outcome:
        """Read one row of `query` that SQL answered."""
        holds = None if row["holds"] is None else bool(row["holds"])
        return Outcome(row["run_id"], holds, self.fact if holds is None else "", row, bool(row.get("absent")))

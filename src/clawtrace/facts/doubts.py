"""What is not known of one run's rows, and the rows that nothing records (spec: certain-and-possible.md §2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Doubt", "Doubted", "Gap", "certain"]


class Doubt(NamedTuple):
    """One thing that the spans leave open of a row: a value, or whether there is such a row at all."""

    column: str | None
    """The column whose value is unknown; None: the row is not certain."""
    reason: str
    """One of `REASONS`."""
    span: int | None = None
    """The span that shows it, as its index in the run."""


class Doubted:
    """A row of which not everything need be known."""

    __slots__ = ()
    index: int | None
    doubts: list[Doubt]

    def doubt(self, reason: str, *columns: str, span: int | None = None) -> None:
        """Doubt values of the row, or without any the row itself; `span` shows it, else the row's own span does."""
        shown_by = self.index if span is None else span
        self.doubts += [Doubt(column, reason, shown_by) for column in columns or (None,)]

    def forget(self, reason: str, *columns: str) -> None:
        """Make values unknown that are attributes of the columns' names."""
        for column in columns:
            setattr(self, column, None)
        self.doubt(reason, *columns)


class Gap(NamedTuple):
    """Rows that nothing records may exist; what is None may be anything."""

    relation: str
    at_most: int | None = None
    """How many rows; None: any number."""
    name: str | None = None
    outcome: str | None = None
    agent: str | None = None
    """Name of the agent that they would belong to."""
    turn: int | None = None
    start_ns: int | None = None
    """The earliest instant at which they can have begun."""
    end_ns: int | None = None
    """The latest instant at which they can have ended."""
    reason: str = ""
    """One of `REASONS`."""
    span: int | None = None
    """The span that shows it, as its index in the run."""


def certain(doubts: Sequence[Doubt]) -> bool:
    """Return whether a row with these doubts is certain to exist."""
    return not doubts or all(doubt.column is not None for doubt in doubts)

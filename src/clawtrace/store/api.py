"""The contracts of a span store, in MUST and MAY: what verdicts ask of it, and what facts are made in; jobs for its sides.

A store holds the raw tables, the facts computed from them, and answers portable SQL over the relations of
`clawtrace.model.relations`. Ownership: rows handed in stay the caller's; rows handed out are the caller's.
An empty answer is an empty list, never None. Every error is a `StoreError` or, for the text of a query, a `QueryError`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Thread
from typing import Any, Protocol, TypeVar

from clawtrace.model.query import NO_LIMITS, BoundRelation, Limits, Query, Scalar
from clawtrace.model.raw import RawSink
from clawtrace.model.run import RunRecord

__all__ = ["Answer", "Columns", "FactSide", "FactStore", "QueryableStore", "at_once"]


class Columns(Protocol):
    """An answer that is read by the column or by the row, where not every row will be looked at."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def column(self, name: str) -> list[Any]:
        """Return every value of a column, in the order of the rows."""

    def key(self, name: str) -> Hashable:
        """Return what equals the key of another answer's column only where that has the same values in the same order."""

    def row(self, number: int) -> Mapping[str, Any]:
        """Return a row, counted from 0."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Columns and rows of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def __len__(self) -> int:
        return len(self.rows)

    def dicts(self) -> list[dict[str, Any]]:
        """Return the rows by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def column(self, name: str) -> list[Any]:
        """Return every value of a column, in the order of the rows."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def key(self, name: str) -> Hashable:
        """Return what equals the key of another answer's column only where that has the same values in the same order."""
        return tuple(self.column(name))

    def row(self, number: int) -> dict[str, Any]:
        """Return a row by column name, counted from 0."""
        return dict(zip(self.columns, self.rows[number], strict=True))


class QueryableStore(Protocol):
    """A store that can be asked.

    It MUST answer every text that keeps to portable SQL with the same rows as every other store (order aside).
    It MUST NOT let a query write, attach or read files. It MAY refuse a query (`QueryError`), never approximate it.
    """

    def ask(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Answer:
        """Answer one query over the relations, ``selected_runs`` and `bound`.

        Raises:
            QueryError: the text is not valid for this store; the message holds the engine's words.
        """

    def ask_columns(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Columns:
        """Answer as `ask` does; a store MAY leave values where they are until they are read.

        Raises:
            QueryError: as `ask`.
        """

    def ask_user(self, sql: str, params: Mapping[str, Scalar] | None = None, limits: Limits = NO_LIMITS) -> Answer:
        """Answer a user's own SQL: exactly one SELECT, read-only, in the store's own dialect.

        Args:
            sql: the text; ``:name`` marks a parameter.
            params: the parameters, each of which the text must use.
            limits: how long it may run, and how many rows, the first ones, are fetched at most.

        Raises:
            QueryError: the text is no single SELECT, the engine refuses it, or the time limit has passed.
        """

    def narrowed(self, run_ids: Sequence[str], queries: Sequence[Query]) -> AbstractContextManager[None]:
        """Say that, inside, only `queries` are asked, on any side, and only of some or all of `run_ids`; a store MAY ignore it."""

    def sides(self) -> Sequence[QueryableStore]:
        """Return what MAY be asked at the same time, each by one thread, the store itself first; one alone is enough.

        Runs selected and relations bound on one of them are seen there alone.
        """

    def select_runs(self, run_ids: Iterable[str]) -> None:
        """Make ``selected_runs(run_id)`` hold exactly `run_ids` for the queries that follow."""


class FactSide(QueryableStore, Protocol):
    """One connection on which facts are computed: raw tables in, tables of relations out, in the store's own SQL."""

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held by one thread, as often as it likes, while what it asks must not change."""

    def script(self, sql: str, params: Mapping[str, Scalar] | None = None) -> list[tuple[Any, ...]]:
        """Run statements and return the rows of the last one; the caller owns the transaction.

        Raises:
            StoreError: the store refused a statement.
        """

    def columns(self, sql: str) -> Columns:
        """Run one SELECT and return its rows, to be read by the column.

        Raises:
            StoreError: the store refused the statement.
        """

    def load(self, name: str, columns: Mapping[str, tuple[str, Sequence[Any]]]) -> None:
        """Make the temporary relation `name` of this side hold exactly these columns, each with its type."""

    def insert(self, table: str, columns: Mapping[str, tuple[str, Sequence[Any]]]) -> None:
        """Append rows to a table, by column name; the caller owns the transaction.

        Raises:
            StoreError: the store refused the rows.
        """

    def sides(self) -> Sequence[FactSide]:
        """Return what MAY work at the same time, each in one thread, the store itself first."""


class FactStore(FactSide, RawSink, Protocol):
    """A store in which facts are kept current."""

    @property
    def path(self) -> str:
        """The location of the store, for messages."""

    def run_ids(self) -> list[str]:
        """Return every run, in the order of first sight."""

    def take_retired(self) -> list[str]:
        """Return the runs that are no more (their traces were adopted) and may still have facts; each is returned once."""

    def record(self, run_id: str) -> RunRecord | None:
        """Return what is known of a run apart from its spans; None when nothing was recorded."""

    def put_record(self, record: RunRecord) -> None:
        """Store what is known of a run apart from its spans; the newest record of a run counts."""

    def compress(self) -> None:
        """Give back what memory rows can do without; a store MAY do nothing."""

    def returning_memory(self) -> AbstractContextManager[None]:
        """Return to the system, inside, what was freed; a store MAY do nothing."""


Side = TypeVar("Side")


def at_once(sides: Sequence[Side], jobs: Iterable[Callable[[Side], object]]) -> None:
    """Do every job once, with whichever side is free; the first side works in the caller's thread.

    Raises:
        BaseException: what the first job raised that failed; jobs not yet begun by then are left out.
    """
    waiting = deque(jobs)
    failed: list[BaseException] = []

    def work(side: Side) -> None:
        try:
            while True:
                try:
                    job = waiting.popleft()
                except IndexError:
                    return
                job(side)
        except BaseException as error:
            waiting.clear()
            failed.append(error)

    threads = [Thread(target=work, args=(side,)) for side in sides[1 : len(waiting)]]
    try:
        for thread in threads:
            thread.start()
        work(sides[0])
        for thread in threads:
            thread.join()
    except BaseException:  # a signal: a side that is at work cannot be closed
        waiting.clear()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        raise
    if failed:
        raise failed[0]

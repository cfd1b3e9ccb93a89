"""Rows of relations for showing: those of the selected runs, by run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clawtrace.model.query import Query
from clawtrace.store.api import QueryableStore

__all__ = ["by_run", "rows_sql"]


def rows_sql(relation: str, columns: Iterable[str], order: str, more: str = "", **instead: str) -> str:
    """Return SQL for the rows of a relation, called ``r``, of the selected runs.

    Args:
        columns: names; of the relation, where `instead` has no other SQL.
        order: columns of the relation by which the rows of a run are ordered.
        more: joins and a condition.
    """
    listed = ", ".join(f"{instead.get(name, f'r.{name}')} AS {name}" for name in ("run_id", *columns))
    ordered = ", ".join(f"r.{name}" for name in ("run_id", *order.split()))
    selected = f"{relation} AS r JOIN selected_runs AS q ON q.run_id = r.run_id"
    return f"SELECT {listed} FROM {selected} {more} ORDER BY {ordered}"


def by_run(store: QueryableStore, sql: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a query by the run that they belong to."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in store.ask(Query(sql)).dicts():
        found.setdefault(row.pop("run_id"), []).append(row)
    return found

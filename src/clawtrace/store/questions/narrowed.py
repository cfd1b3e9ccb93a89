"""Copies of some runs' rows that hide the relations, on every side of a store: twenty questions then read each relation once.

The copies lie in a database in memory that all sides see; what hides a relation on a side is a temporary view.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from clawtrace.model.query import Query
from clawtrace.model.relations import RELATIONS, Relation
from clawtrace.store.api import FactSide, at_once

__all__ = ["narrowed"]


@contextmanager
def narrowed(sides: Sequence[FactSide], run_ids: Sequence[str], queries: Sequence[Query]) -> Iterator[None]:
    """Restrict the relations named by `queries`, inside this context, to these runs' rows and to the columns they name."""
    text = " ".join(query.sql for query in queries)
    read = {relation.name: columns for relation in RELATIONS.values() if (columns := _columns_read(relation, text))}
    read.pop("attributes", None)  # that one is a view
    sides[0].script("ATTACH ':memory:' AS narrowed")
    try:
        at_once(sides, [partial(_copy, run_ids, name, columns) for name, columns in read.items()])
        for side in sides:
            for name in read:
                side.script(f"CREATE TEMP VIEW {name} AS SELECT * FROM narrowed.{name}")
        yield
    finally:
        for side in sides:
            for name in read:
                side.script(f"DROP VIEW IF EXISTS temp.{name}")
        sides[0].script("DETACH narrowed")


def _copy(run_ids: Sequence[str], name: str, columns: Sequence[str], side: FactSide) -> None:
    side.select_runs(run_ids)
    # By row number: the other columns of what is not selected are then not decoded, a quarter of the time.
    side.script(
        f"CREATE TABLE narrowed.{name} AS SELECT r.{', r.'.join(columns)} FROM {name} AS r WHERE r.rowid IN "
        f"(SELECT q.rowid FROM {name} AS q JOIN selected_runs AS s ON s.run_id = q.run_id)"
    )


def _columns_read(relation: Relation, sql: str) -> list[str]:
    """Return the columns of `relation` that a text may read; none where it does not name the relation."""
    named = re.findall(rf"\b(?:FROM|JOIN)\s+{relation.name}\b(?: AS (\w+))?", sql, re.IGNORECASE)
    read = {column for alias in named if alias for column in re.findall(rf"\b{alias}\.(\w+|\*)", sql)}
    if "" in named or "*" in read:
        return list(relation.column_names)
    return [name for name in relation.column_names if name in read]

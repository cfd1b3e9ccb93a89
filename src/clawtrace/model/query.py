"""What an assertion may ask: portable SQL, bound parameters, small bound relations.

The SQL keeps to what DuckDB, ClickHouse, PostgreSQL, SQLite and Spark have in common
(spec: architecture.md §3, "Portable SQL"). Parameters are written ``:name``; a store rewrites
the marker and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["NO_LIMITS", "BoundRelation", "Limits", "Query", "Resolve", "Scalar"]

Scalar = str | int | float | bool | None
"""A value that can be bound to a parameter."""


class Limits(NamedTuple):
    """What a user's own SQL may take, which is asked read-only."""

    time_limit_s: float | None = None
    """Seconds after which it is interrupted; None for no limit."""
    max_rows: int | None = None
    """The most rows that are fetched; None for all."""


NO_LIMITS = Limits()


class Query(NamedTuple):
    """One SQL text and its bound parameters.

    The text selects from the relations of `clawtrace.model.relations`, from ``selected_runs(run_id)``
    and from the relations that `Resolve` binds; it answers for every selected run at once.
    """

    sql: str
    params: Mapping[str, Scalar] = MappingProxyType({})
    by_run: Limits | None = None
    """Given for a user's own SQL, which is not portable and is asked once for each run, with ``:run_id`` bound; None for
    everything else."""


class Resolve(NamedTuple):
    """A predicate on text, decided in Python once per distinct value of the selected runs.

    The engine runs ``SELECT DISTINCT column FROM relation`` for the selected runs, calls `items` on each
    non-NULL value and binds the relation ``name(value text, item bigint)`` with one row per item returned.
    A plain predicate returns ``(0,)`` or ``()``; a list of expectations returns the indexes that match.
    """

    name: str
    """Name of the bound relation in the assertion's SQL."""
    relation: str
    column: str
    items: Callable[[str], Iterable[int]]
    where: str = ""
    """Optional SQL condition over the relation (alias ``r``) and earlier bound relations, narrowing the values."""
    names: tuple[str, ...] = ()
    """The names that are meant, if they are plain names; a decided verdict suggests a recorded one that is nearly the same."""


class BoundRelation(NamedTuple):
    """A resolved relation, ready to be bound by a store: ``name(value, item)``."""

    name: str
    rows: tuple[tuple[str, int], ...]

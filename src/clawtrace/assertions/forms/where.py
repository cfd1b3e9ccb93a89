"""Conditions on one row of a relation, in SQL's own three values: true, false, and NULL where the row does not say.

The row has the alias ``r``. A gap, the rows that nothing records, has the alias ``p``: a condition is unknown of what a gap does
not say, so that only a known name or outcome can exclude one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.model.query import Resolve, Scalar

__all__ = ["ANY", "TOOL_NAMES", "Where", "among", "both", "equal", "is_open", "name_is", "name_of"]


class Where(NamedTuple):
    """A condition."""

    sql: str
    """Over ``r``."""
    gap: str = "TRUE"
    """The same of a gap, over ``p``; it excludes the gap where it is false."""
    columns: tuple[str, ...] = ()
    """The columns that it reads: what is in doubt about them leaves it open."""
    resolve: tuple[Resolve, ...] = ()
    params: Mapping[str, Scalar] = MappingProxyType({})


ANY = Where("TRUE")
"""Every row."""

TOOL_NAMES = (
    "(SELECT run_id, name FROM run_tools UNION ALL SELECT run_id, name FROM background_tool_calls"
    " UNION ALL SELECT run_id, name FROM tool_requests"
    " UNION ALL SELECT run_id, name FROM gaps WHERE relation = 'tool_calls')"
)
"""Relations with names of tools: calls, requests, and gaps."""

AGENT_NAMES = "(SELECT run_id, name FROM agents UNION ALL SELECT run_id, name FROM gaps WHERE relation = 'agents')"
"""Relations with names of agents."""


def among(value: str, relation: str, item: int | None = 0, of_null: str = "NULL") -> str:
    """Return SQL: whether a text is among the values that `relation` binds to `item`, or to any; `of_null` of NULL, on every store."""
    bound = "" if item is None else f" WHERE m.item = {item}"
    return (
        f"CASE WHEN {value} IS NULL THEN {of_null} "
        f"WHEN {value} IN (SELECT m.value FROM {relation} AS m{bound}) THEN TRUE ELSE FALSE END"
    )


def is_open(run_id: str) -> str:
    """Return SQL: whether more spans may come of the run whose id is the expression `run_id`."""
    return f"{run_id} IN (SELECT w.run_id FROM runs AS w WHERE w.closed_by IS NULL)"


def name_of(
    items: Callable[[str], Iterable[int]],
    names: tuple[str, ...] = (),
    *,
    within: str = TOOL_NAMES,
    negated: bool = False,
    of_null: str = "NULL",
) -> Where:
    """Return the condition that the column ``name`` is meant; with `negated`, that it is not; `of_null`: whether NULL is."""
    wrap = "NOT ({})" if negated else "{}"
    return Where(
        wrap.format(among("r.name", "asked_name", of_null=of_null)),
        wrap.format(among("p.name", "asked_name", of_null=of_null)),
        ("name",),
        (Resolve("asked_name", within, "name", items, names=names),),
    )


def name_is(matcher: Matcher, *, within: str = TOOL_NAMES) -> Where:
    """Return the condition that the column ``name`` is what a matcher means; an unknown one, too, where every name is meant."""
    of_null = "TRUE" if matcher.text == "glob:*" else "NULL"
    return name_of(matcher.items, matcher.names, within=within, of_null=of_null)


def equal(column: str, value: Scalar, *, of_gap: bool = False) -> Where:
    """Return the condition that a column has a value; `of_gap`: a gap has the column, too."""
    return Where(
        f"r.{column} = :{column}", f"p.{column} = :{column}" if of_gap else "TRUE", (column,), (), {column: value}
    )


def both(*conditions: Where) -> Where:
    """Return the condition that all of them hold."""
    asked = [one for one in conditions if one.sql != "TRUE"]
    if not asked:
        return ANY
    return Where(
        " AND ".join(f"({one.sql})" for one in asked),
        " AND ".join(f"({one.gap})" for one in asked if one.gap != "TRUE") or "TRUE",
        tuple(dict.fromkeys(column for one in asked for column in one.columns)),
        tuple({predicate.name: predicate for one in asked for predicate in one.resolve}.values()),
        {name: value for one in asked for name, value in one.params.items()},
    )

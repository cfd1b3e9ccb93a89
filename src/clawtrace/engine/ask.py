"""Ask one assertion of many runs: resolve its texts, run its query, settle what is left, fetch its evidence.

This is the one path from an assertion to its answer. What the answer means for a verdict (completeness, finality,
`on_missing`, severity) is decided elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.model.query import BoundRelation, Query, Resolve
from clawtrace.store.api import QueryableStore

__all__ = ["Asked", "ask"]

_SHOWN = 10
"""Ranks of evidence shown for a verdict."""

_EVIDENCE = """
SELECT e.run_id AS run_id, e.span_id AS span_id, e.why AS why, e.rank AS rank,
       p.trace_id AS trace_id, p.name AS name, p.start_ns AS start_ns
FROM (
{sql}
) AS e
LEFT JOIN spans AS p ON p.run_id = e.run_id AND p.span_id = e.span_id
WHERE e.rank <= {shown}
ORDER BY e.run_id, e.rank, e.span_id
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer of one assertion for many runs."""

    outcomes: dict[str, Outcome]
    """By run id, for the runs that have a trace; a run that is not in it has none."""
    query: Query
    """The query as it ran."""
    bound: tuple[BoundRelation, ...]
    """The resolved relations that it read."""
    assertion: Assertion
    store: QueryableStore

    @property
    def params(self) -> dict[str, Any]:
        """What was bound: parameters by name, and resolved relations as lists of (value, item)."""
        return {**self.query.params, **{one.name: [list(row) for row in one.rows] for one in self.bound}}

    def evidence(self, run_ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        """Return the spans that decided, by run id, the most telling first: ``span_id, why, rank, trace_id, name, start_ns``.

        At most `_SHOWN` ranks a run; ``selected_runs`` holds `run_ids` afterwards.
        """
        query = self.assertion.evidence()
        found: dict[str, list[dict[str, Any]]] = {run_id: [] for run_id in run_ids}
        if query is None or not run_ids:
            return found
        self.store.select_runs(run_ids)
        sql = _EVIDENCE.format(sql=query.sql.strip(), shown=_SHOWN)
        for row in self.store.ask(Query(sql, query.params), self.bound).dicts():
            found[row["run_id"]].append(row)
        return found


def ask(store: QueryableStore, assertion: Assertion, run_ids: Sequence[str]) -> Asked:
    """Answer `assertion` for `run_ids`, whose facts are in `store`; ``selected_runs`` is changed.

    Raises:
        QueryError: the store refused the assertion's SQL.
        PatternTimeoutError: a regular expression took too long on a value.
    """
    store.select_runs(run_ids)
    bound: list[BoundRelation] = []
    for predicate in assertion.resolve():
        bound.append(_resolve(store, predicate, bound))
    query = assertion.query()
    rows = store.ask(query, bound).dicts()
    left = {row["run_id"]: row for row in rows if not row.get("settled", True)}
    outcomes = {row["run_id"]: assertion.outcome(row) for row in rows if row["run_id"] not in left}
    if left:
        outcomes |= _decide(store, assertion, left, bound)
    return Asked(outcomes, query, tuple(bound), assertion, store)


def _resolve(store: QueryableStore, predicate: Resolve, bound: Sequence[BoundRelation]) -> BoundRelation:
    """Decide a predicate once for each distinct value of the selected runs."""
    column = f"r.{predicate.column}"
    condition = f" AND ({predicate.where})" if predicate.where else ""
    sql = (
        f"SELECT DISTINCT {column} AS value FROM {predicate.relation} AS r "
        f"JOIN selected_runs AS s ON s.run_id = r.run_id WHERE {column} IS NOT NULL{condition}"
    )
    values = [row[0] for row in store.ask(Query(sql), bound).rows]
    return BoundRelation(predicate.name, tuple((value, item) for value in values for item in predicate.items(value)))


def _decide(
    store: QueryableStore, assertion: Assertion, left: dict[str, dict[str, Any]], bound: Sequence[BoundRelation]
) -> dict[str, Outcome]:
    """Settle in Python the runs that SQL left open."""
    query = assertion.details()
    details: dict[str, list[Row]] = defaultdict(list)
    if query is not None:
        store.select_runs(list(left))
        for row in store.ask(query, bound).dicts():
            details[row["run_id"]].append(row)
    return {run_id: assertion.decide(row, details[run_id]) for run_id, row in left.items()}

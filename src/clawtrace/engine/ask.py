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
from clawtrace.model.verdict import Evidence
from clawtrace.store.api import QueryableStore

__all__ = ["EVIDENCE_ROWS", "WHY_LENGTH", "Asked", "ask"]

EVIDENCE_ROWS = 10
"""How many evidence rows a verdict carries; every further one stays a query away."""

WHY_LENGTH = 300
"""Characters to which a piece of evidence is cut."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer of one assertion for many runs."""

    outcomes: tuple[Outcome, ...]
    """One for each of the runs that has a trace; a run that is not among them has none."""
    query: Query
    """The query as it ran."""
    bound: tuple[BoundRelation, ...]
    """The resolved relations that it read."""
    assertion: Assertion
    store: QueryableStore

    def params(self) -> dict[str, Any]:
        """Return what was bound: the parameters, and each resolved relation as a list of rows."""
        return dict(self.query.params) | {
            relation.name: [list(row) for row in relation.rows] for relation in self.bound
        }

    def evidence(self, run_ids: Sequence[str]) -> dict[str, list[Evidence]]:
        """Return the spans that decided, by run id, the most telling first; ``selected_runs`` is changed."""
        query = self.assertion.evidence()
        found: dict[str, list[Evidence]] = {run_id: [] for run_id in run_ids}
        if query is None or not run_ids:
            return found
        self.store.select_runs(run_ids)
        for row in self.store.ask(Query(_EVIDENCE.format(query.sql), query.params), self.bound).dicts():
            why = row["why"] if len(row["why"]) <= WHY_LENGTH else row["why"][: WHY_LENGTH - 1] + "…"
            evidence = Evidence(row["trace_id"], row["span_id"], row["name"] or "", why, row["start_ns"])
            found[row["run_id"]].append(evidence)
        return found


_EVIDENCE = f"""
SELECT e.run_id AS run_id, e.span_id AS span_id, e.why AS why, e.rank AS rank,
       p.trace_id AS trace_id, p.name AS name, p.start_ns AS start_ns
FROM ({{}}) AS e
LEFT JOIN (
  SELECT z.run_id AS run_id, z.span_id AS span_id, z.trace_id AS trace_id, z.name AS name, z.start_ns AS start_ns
  FROM spans AS z
  JOIN selected_runs AS y ON y.run_id = z.run_id
) AS p ON p.run_id = e.run_id AND p.span_id = e.span_id
WHERE e.rank <= {EVIDENCE_ROWS}
ORDER BY run_id, rank, span_id
"""


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
    settled = [row for row in rows if row.get("settled", True)]
    outcomes = [assertion.outcome(row) for row in settled]
    if len(settled) < len(rows):
        outcomes += _decide(store, assertion, [row for row in rows if not row.get("settled", True)], bound)
    return Asked(tuple(outcomes), query, tuple(bound), assertion, store)


def _resolve(store: QueryableStore, predicate: Resolve, bound: Sequence[BoundRelation]) -> BoundRelation:
    """Decide a predicate once for each distinct value of the selected runs."""
    column = f"r.{predicate.column}"
    condition = f" AND ({predicate.where})" if predicate.where else ""
    sql = (
        f"SELECT DISTINCT {column} AS value FROM {predicate.relation} AS r "
        f"JOIN selected_runs AS s ON s.run_id = r.run_id WHERE {column} IS NOT NULL{condition}"
    )
    values = sorted(row[0] for row in store.ask(Query(sql), bound).rows)
    return BoundRelation(predicate.name, tuple((value, item) for value in values for item in predicate.items(value)))


def _decide(
    store: QueryableStore, assertion: Assertion, rows: Sequence[Row], bound: Sequence[BoundRelation]
) -> list[Outcome]:
    """Settle in Python the runs that SQL left open."""
    query = assertion.details()
    details: dict[str, list[Row]] = defaultdict(list)
    if query is not None:
        store.select_runs([row["run_id"] for row in rows])
        for row in store.ask(query, bound).dicts():
            details[row["run_id"]].append(row)
    return [assertion.decide(row, details[row["run_id"]]) for row in rows]

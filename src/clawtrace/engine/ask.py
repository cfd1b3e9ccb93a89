"""Ask one assertion of many runs: resolve its texts, run its query, settle what is left, fetch its evidence.

This is the one path from an assertion to its answer. What the answer means for a verdict (completeness, finality,
`on_missing`, severity) is decided elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.errors import QueryError
from clawtrace.model.query import BoundRelation, ByRun, Query, Resolve
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
    broken: Mapping[str, str] = field(default_factory=dict)
    """Why a user's own SQL could not be asked of a run, by run id."""

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
    broken: dict[str, str] = {}
    if len(settled) < len(rows):
        unsettled = [row for row in rows if not row.get("settled", True)]
        details = assertion.details()
        if details is not None and details.by_run is not None:
            query = details
            outcomes += _decide_by_run(store, assertion, details.sql, details.by_run, unsettled, broken)
        else:
            outcomes += _decide(store, assertion, details, unsettled, bound)
    return Asked(tuple(outcomes), query, tuple(bound), assertion, store, broken)


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
    store: QueryableStore,
    assertion: Assertion,
    query: Query | None,
    rows: Sequence[Row],
    bound: Sequence[BoundRelation],
) -> list[Outcome]:
    """Settle in Python the runs that SQL left open."""
    details: dict[str, list[Row]] = defaultdict(list)
    if query is not None:
        store.select_runs([row["run_id"] for row in rows])
        for row in store.ask(query, bound).dicts():
            details[row["run_id"]].append(row)
    return [assertion.decide(row, details[row["run_id"]]) for row in rows]


def _decide_by_run(
    store: QueryableStore, assertion: Assertion, sql: str, limits: ByRun, rows: Sequence[Row], broken: dict[str, str]
) -> list[Outcome]:
    """Settle each run by a user's own SQL; a run whose query fails is told in `broken`, the others are answered."""
    outcomes = []
    for row in rows:
        run_id = row["run_id"]
        try:
            answer = store.ask_user(sql, {"run_id": run_id}, time_limit_s=limits.time_limit_s, max_rows=limits.max_rows)
        except QueryError as error:
            broken[run_id] = str(error)
        else:
            outcomes.append(assertion.decide(row, answer.dicts()))
    return outcomes

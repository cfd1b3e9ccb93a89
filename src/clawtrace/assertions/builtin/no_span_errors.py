"""`no_span_errors`: nothing failed on the way."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.base import Assertion, Growth, Outcome
from clawtrace.assertions.counting.bounds import plural
from clawtrace.assertions.matching.matchers import Limiting
from clawtrace.model.query import Query, Resolve

__all__ = ["NoSpanErrors"]

# Each error, and whether its own name, its span's or its model's is ignored.
_ERRORS = """(
      SELECT c.run_id AS run_id, c.span_id AS span_id, c.name AS name, c.kind AS kind, c.message AS message,
             c.recovered AS recovered,
             CASE WHEN c.name IN (SELECT m.value FROM ignored_errors AS m)
                    OR n.name IN (SELECT m.value FROM ignored_spans AS m)
                    OR (c.kind = 'llm' AND l.model IN (SELECT m.value FROM ignored_models AS m)) THEN 1 ELSE 0 END AS ignored
      FROM errors AS c
      LEFT JOIN spans AS n ON n.run_id = c.run_id AND n.span_id = c.span_id
      LEFT JOIN llm_calls AS l ON l.run_id = n.run_id AND l.span_id = n.counted_in
    )"""

_IGNORED = "e.ignored = 1"

# Spans that failed around an ignored error and count as no cause, though both say why and say other things.
_HIDDEN = f"""
    UNION ALL
    SELECT e.run_id AS run_id, -1 AS has_trace, 0 AS recordable, 0 AS counted, 0 AS doubtful, 1 AS hidden, NULL AS name
    FROM {_ERRORS} AS e
    JOIN spans AS i ON i.run_id = e.run_id AND i.span_id = e.span_id
    JOIN spans AS a ON a.run_id = e.run_id
    LEFT JOIN errors AS o ON o.run_id = a.run_id AND o.span_id = a.span_id
    WHERE {_IGNORED} AND a.tree_enter < i.tree_enter AND i.tree_leave < a.tree_leave AND a.kind <> 'infra'
      AND a.error IS NOT NULL AND a.error <> 'error' AND e.message <> 'error' AND o.span_id IS NULL
      AND position(a.error IN e.message) = 0 AND position(e.message IN a.error) = 0
      AND coalesce(a.counted_in, '') <> coalesce(i.counted_in, i.span_id)"""


class NoSpanErrors(Assertion):
    """Nothing failed in the agent's work.

    An error that an agent swallows leaves no trace in its answer. Each cause counts once, however far it travels up to
    parent spans; infrastructure spans such as HTTP clients do not count. With `unrecovered: true` an error is tolerated
    when a later call of the same tool or model succeeded; such a call may still come, so that a fail is not final. A span
    around an ignored error that failed right after it, with other words, may have failed for another reason: that
    leaves the question open.

    Example:
        - type: no_span_errors
          ignore: ["glob:memory.*"]
    """

    growth = "shrinking"
    requires = ("errors.name", "errors.recovered")
    actual_columns = ("counted", "doubtful", "hidden", "total")

    ignore: tuple[Limiting, ...] = ()
    """Names of spans, tools or models (bare) whose errors do not count, whole, or `glob:`, `re:`, `literal:`."""
    unrecovered: bool = False
    """Whether only errors count after which the same tool or model did not succeed."""

    def growth_of(self) -> Growth:
        """A later span can recover an error, or show its cause to be an ignored one: then nothing is final."""
        return "exact" if self.unrecovered or self.ignore else "shrinking"

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct name whether its errors are ignored."""
        of_errors = "r.span_id IN (SELECT x.span_id FROM errors AS x)"
        return (
            Resolve("ignored_errors", "errors", "name", self._ignored),
            Resolve("ignored_spans", "spans", "name", self._ignored, of_errors),
            Resolve("ignored_models", "llm_calls", "model", self._ignored),
        )

    def _ignored(self, name: str) -> tuple[int, ...]:
        return (0,) if any(matcher(name) for matcher in self.ignore) else ()

    def query(self) -> Query:
        """Count the errors that count."""
        sure = "e.recovered = FALSE" if self.unrecovered else "TRUE"
        doubt = "e.recovered IS NULL" if self.unrecovered else "FALSE"
        return Query(f"""
SELECT g.run_id AS run_id, g.counted AS counted, g.doubtful AS doubtful, g.hidden AS hidden, g.total AS total,
       FALSE AS final, g.first_name AS first_name, g.last_name AS last_name,
       CASE WHEN g.counted > 0 THEN FALSE WHEN g.recordable = 0 OR g.doubtful + g.hidden > 0 THEN NULL ELSE TRUE END AS holds,
       CASE WHEN g.counted > 0 THEN NULL WHEN g.recordable = 0 THEN 'errors'
            WHEN g.doubtful > 0 THEN 'errors.recovered' WHEN g.hidden > 0 THEN 'errors' ELSE NULL END AS missing
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.recordable) AS recordable,
         count(CASE WHEN f.counted = 1 THEN 1 END) AS counted,
         count(CASE WHEN f.doubtful = 1 THEN 1 END) AS doubtful,
         count(CASE WHEN f.hidden = 1 THEN 1 END) AS hidden,
         count(CASE WHEN f.has_trace = 0 THEN 1 END) AS total,
         min(f.name) AS first_name, max(f.name) AS last_name
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.errors IS NULL THEN 0 ELSE 1 END AS recordable,
           0 AS counted, 0 AS doubtful, 0 AS hidden, NULL AS name
    FROM run_totals AS t
    UNION ALL
    SELECT e.run_id AS run_id, 0 AS has_trace, 0 AS recordable,
           CASE WHEN {_IGNORED} THEN 0 WHEN {sure} THEN 1 ELSE 0 END AS counted,
           CASE WHEN {_IGNORED} THEN 0 WHEN {doubt} THEN 1 ELSE 0 END AS doubtful, 0 AS hidden,
           CASE WHEN {_IGNORED} THEN NULL WHEN {sure} THEN coalesce(e.name, '(no name)') ELSE NULL END AS name
    FROM {_ERRORS} AS e{_HIDDEN if self.ignore else ""}
  ) AS f
  JOIN selected_runs AS s ON s.run_id = f.run_id
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""")

    def evidence(self) -> Query:
        """Return the errors, those that count first."""
        counts = "e.recovered IS NULL OR e.recovered = FALSE" if self.unrecovered else "TRUE"
        return Query(f"""
SELECT e.run_id AS run_id, e.span_id AS span_id,
       coalesce(e.kind, 'span') || ' ' || coalesce(e.name, '(no name)') || ': ' || coalesce(e.message, 'error') AS why,
       row_number() OVER (
         PARTITION BY e.run_id
         ORDER BY CASE WHEN {_IGNORED} THEN 2 WHEN {counts} THEN 0 ELSE 1 END, e.span_id) AS rank
FROM {_ERRORS} AS e
JOIN selected_runs AS s ON s.run_id = e.run_id
""")

    def expectation(self) -> Any:
        """Return that no error may count, and what is tolerated."""
        return {"errors": 0, "ignore": [matcher.text for matcher in self.ignore], "unrecovered": self.unrecovered}

    def explain(self, outcome: Outcome) -> str:
        """Name what failed."""
        row = outcome.row
        which = "unrecovered error" if self.unrecovered else "error"
        if outcome.holds is None and row["hidden"] and not row["doubtful"]:
            return f"{plural(row['hidden'], 'span')} failed around an ignored error with another message, perhaps for another reason."
        if outcome.holds is None and not row["doubtful"]:
            return "Whether anything failed is unknown."
        if outcome.holds is None:
            return f"{plural(row['doubtful'], 'error')} may have been recovered; whether a retry succeeded is unknown."
        if outcome.holds:
            tolerated = f"; {plural(row['total'], 'error')} tolerated" if row["total"] else ""
            return f"No {which} in the agent's work{tolerated}."
        names = " and ".join(f"`{name}`" for name in sorted({row["first_name"], row["last_name"]}))
        among = "among them " if row["counted"] > 2 else ""
        return f"{plural(row['counted'], which)} in the agent's work: {among}{names}."

"""`llm_call_count`: how often the model was called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import model_validator

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.counting.apart import apart, model_calls_apart, still_open
from clawtrace.assertions.counting.bounds import Count, Counted, bounds_of, check_count, decide_sql, plural, words
from clawtrace.model.query import Query

__all__ = ["LlmCallCount"]


class LlmCallCount(Assertion):
    """The number of answered model calls is as asked: exactly `count`, or within the bounds.

    Too many calls are a loop that costs money, too few an agent that did not work. A logical call counts once, however
    many spans record it; the evidence says how spans became calls. While the run is open two calls may still turn out
    to be one: a passed maximum or a reached minimum is final when enough of the calls are sure to stay apart.

    Example:
        - type: llm_call_count
          min: 1
          max: 4
    """

    growth = "exact"
    main_field = "count"
    requires = ("llm_calls.outcome",)

    count: Counted | None = None
    """The exact number of calls, or `{min, max}`."""
    min: Count | None = None
    """Smallest number of calls."""
    max: Count | None = None
    """Largest number of calls."""
    include_failed: bool = False
    """Whether attempts that got no answer count too."""

    @model_validator(mode="after")
    def _check(self) -> LlmCallCount:
        check_count(self, self.count, self.min, self.max)
        return self

    def query(self) -> Query:
        """Compare the count of the run; where it is unknown, it is at least that of the calls that were recorded.

        What no later call could change is left open while the run is, and two of the calls may become one.
        """
        failed = " + t.failed_llm_attempts" if self.include_failed else ""
        at_least = " + coalesce(t.failed_llm_attempts, k.failed, 0)" if self.include_failed else ""
        bounds = self._bounds
        decided = "g.low > :max" if "max" in bounds else "g.low >= :min"
        return Query(
            f"""
SELECT g.run_id AS run_id, {decide_sql("g.low", "g.high", bounds.get("min"), bounds.get("max"))} AS holds,
       CASE WHEN {decided} THEN TRUE ELSE FALSE END AS final,
       CASE WHEN {decided} AND {still_open("g.run_id")} THEN FALSE ELSE TRUE END AS settled,
       CASE WHEN g.high IS NOT NULL THEN NULL WHEN g.answered IS NULL THEN 'llm_calls'
            ELSE 'llm_calls.failed_attempts' END AS missing,
       g.answered AS answered, g.failed AS failed, g.answered_low AS answered_low, g.failed_low AS failed_low,
       g.low AS low, g.high AS high
FROM (
  SELECT t.run_id AS run_id, t.llm_calls AS answered, t.failed_llm_attempts AS failed,
         coalesce(k.answered, 0) AS answered_low, coalesce(k.failed, 0) AS failed_low,
         coalesce(t.llm_calls, k.answered, 0){at_least} AS low, t.llm_calls{failed} AS high
  FROM run_totals AS t
  JOIN selected_runs AS s ON s.run_id = t.run_id
  LEFT JOIN (
    SELECT c.run_id AS run_id, count(CASE WHEN c.outcome = 'ok' THEN 1 END) AS answered,
           count(CASE WHEN c.outcome = 'error' THEN 1 END) AS failed
    FROM llm_calls AS c
    GROUP BY c.run_id
  ) AS k ON k.run_id = t.run_id
) AS g
""",
            dict(bounds),
        )

    def details(self) -> Query:
        """Return the calls that stay apart."""
        return Query(model_calls_apart())

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Keep the answer; it is final when enough calls stay apart to decide it."""
        bounds, sure = self._bounds, apart(details)
        final = sure > bounds["max"] if "max" in bounds else sure >= bounds["min"]
        return Outcome(row["run_id"], bool(row["holds"]), final, row["missing"] or "", row)

    @property
    def _bounds(self) -> dict[str, int]:
        """`min` and `max`, an exact count being both; what is given together must hold together."""
        return bounds_of(self.count, self.min, self.max)

    def evidence(self) -> Query:
        """Return the calls, those beyond the maximum first, and the line that reconciles spans with calls."""
        most = self._bounds.get("max")
        beyond = "0" if most is None else "CASE WHEN g.place > :max THEN 0 ELSE 1 END"
        outcomes = "" if self.include_failed else " WHERE c.outcome = 'ok'"
        return Query(
            f"""
SELECT g.run_id AS run_id, g.span_id AS span_id,
       'model call ' || g.place || ': ' || coalesce(g.model, 'unknown model') || ', ' || g.outcome AS why,
       row_number() OVER (PARTITION BY g.run_id ORDER BY {beyond}, g.place) AS rank
FROM (
  SELECT c.run_id AS run_id, c.span_id AS span_id, c.model AS model, c.outcome AS outcome,
         row_number() OVER (PARTITION BY c.run_id ORDER BY c.call_no) AS place
  FROM llm_calls AS c
  JOIN selected_runs AS s ON s.run_id = c.run_id{outcomes}
) AS g
UNION ALL
SELECT p.run_id AS run_id, NULL AS span_id,
       count(*) || ' model spans: call ' || count(CASE WHEN p.counted_as = 'call' THEN 1 END)
         || ', wrapper ' || count(CASE WHEN p.counted_as = 'wrapper' THEN 1 END)
         || ', accounting ' || count(CASE WHEN p.counted_as = 'accounting' THEN 1 END)
         || ', duplicate ' || count(CASE WHEN p.counted_as = 'duplicate' THEN 1 END) AS why,
       1 AS rank
FROM spans AS p
JOIN selected_runs AS q ON q.run_id = p.run_id
WHERE p.kind = 'llm'
GROUP BY p.run_id
""",
            {} if most is None else {"max": most},
        )

    def expectation(self) -> Any:
        """Return the bounds."""
        return self._bounds

    def actual(self, outcome: Outcome) -> Any:
        """Return the count; None when unknown."""
        return outcome.row["high"]

    def explain(self, outcome: Outcome) -> str:
        """Say the count against the bounds."""
        row = outcome.row
        asked = f"expected {words(self._bounds.get('min'), self._bounds.get('max'))}"
        if row["answered"] is None:
            if not row["low"]:
                return f"The number of model calls is unknown, {asked}."
            answered = f"At least {plural(row['answered_low'], 'answered model call')}"
        else:
            answered = plural(row["answered"], "answered model call")
        failed = f" and {plural(row['failed'], 'failed attempt')}" if row["failed"] else ""
        if self.include_failed and row["failed"] is None:
            known = row["failed_low"]
            failed = (
                f" and at least {plural(known, 'failed attempt')}"
                if known
                else " and an unknown number of failed attempts"
            )
        noted = "" if self.include_failed or not failed else " (failed attempts are not counted)"
        return f"{answered}{failed}{noted}, {asked}."

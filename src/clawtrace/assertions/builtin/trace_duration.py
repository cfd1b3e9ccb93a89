"""`trace_duration`: how long the run took."""

from __future__ import annotations

from typing import Any, Literal

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.counting.bounds import Amount, milliseconds
from clawtrace.model.query import Query

__all__ = ["TraceDuration"]

_LENGTH = {"wall": "t.last_end_ns - t.first_start_ns", "busy": "t.busy_ns"}


class TraceDuration(Assertion):
    """The run took at most `max_ms` milliseconds.

    Measured over the spans of the agent's work (infrastructure spans such as HTTP clients left out): `wall` from the
    first start to the last end, `busy` only the time in which at least one of them was open, idle gaps left out. Where
    the spans left out reach beyond the others, the message also says how long the whole trace took.

    Example:
        - type: trace_duration
          max_ms: 30000
    """

    growth = "shrinking"
    main_field = "max_ms"
    requires = ("spans.start_ns", "spans.end_ns")

    max_ms: Amount
    """Longest duration, in milliseconds."""
    measure: Literal["wall", "busy"] = "wall"
    """`wall`: first start to last end; `busy`: the union of the spans' intervals."""

    def query(self) -> Query:
        """Compare the run's length."""
        return Query(
            f"""
SELECT g.run_id AS run_id, g.length_ns AS length_ns, g.whole_ns AS whole_ns, g.wall_ns AS wall_ns,
       CASE WHEN g.length_ns > :max_ns THEN FALSE WHEN g.length_ns <= :max_ns THEN TRUE ELSE NULL END AS holds,
       CASE WHEN g.length_ns IS NULL THEN 'spans.end_ns' ELSE NULL END AS missing
FROM (
  SELECT t.run_id AS run_id, {_LENGTH[self.measure]} AS length_ns, {_LENGTH["wall"]} AS wall_ns,
         CASE WHEN i.last_ns > t.last_end_ns THEN i.last_ns ELSE t.last_end_ns END
           - CASE WHEN i.first_ns < t.first_start_ns THEN i.first_ns ELSE t.first_start_ns END AS whole_ns
  FROM run_totals AS t
  JOIN selected_runs AS s ON s.run_id = t.run_id
  LEFT JOIN (
    SELECT p.run_id AS run_id, min(p.start_ns) AS first_ns, max(p.end_ns) AS last_ns
    FROM spans AS p
    JOIN selected_runs AS q ON q.run_id = p.run_id
    WHERE p.kind = 'infra' AND p.duration_ns IS NOT NULL AND p.start_ns > 0
    GROUP BY p.run_id
  ) AS i ON i.run_id = t.run_id
) AS g
""",
            {"max_ns": round(self.max_ms * 1_000_000)},
        )

    def evidence(self) -> Query:
        """Return the span that started first, the one that ended last, then the longest ones."""
        return Query("""
SELECT g.run_id AS run_id, g.span_id AS span_id, g.name || ': ' || g.place AS why,
       row_number() OVER (PARTITION BY g.run_id ORDER BY g.weight, g.duration_ns DESC, g.span_id) AS rank
FROM (
  SELECT p.run_id AS run_id, p.span_id AS span_id, p.name AS name, coalesce(p.duration_ns, 0) AS duration_ns,
         CASE WHEN p.start_ns = t.first_start_ns AND p.end_ns = t.last_end_ns THEN 'first start and last end'
              WHEN p.start_ns = t.first_start_ns THEN 'first start'
              WHEN p.end_ns = t.last_end_ns THEN 'last end' ELSE 'in between' END AS place,
         CASE WHEN p.start_ns = t.first_start_ns OR p.end_ns = t.last_end_ns THEN 0 ELSE 1 END AS weight
  FROM spans AS p
  JOIN selected_runs AS s ON s.run_id = p.run_id
  JOIN run_totals AS t ON t.run_id = p.run_id
  WHERE p.kind <> 'infra'
) AS g
""")

    def actual(self, outcome: Outcome) -> Any:
        """Return the duration in milliseconds; None when unknown."""
        length = outcome.row["length_ns"]
        return None if length is None else length / 1e6

    def explain(self, outcome: Outcome) -> str:
        """Say the duration against the limit."""
        if outcome.holds is None:
            return "The duration is unknown: no span of the agent's work has an end, or their clocks contradict each other."
        how = "" if self.measure == "wall" else " of busy time"
        word = "within" if outcome.holds else "over"
        said = f"The run took {milliseconds(self.actual(outcome))}{how}, {word} {milliseconds(self.max_ms)}"
        wall, whole = outcome.row["wall_ns"], outcome.row["whole_ns"]
        if wall is None or whole is None or whole <= wall:
            return f"{said}."
        return f"{said}; the whole trace, including infrastructure spans, which do not count, took {milliseconds(whole / 1e6)}."

"""`trace_duration`: how long the run took."""

from __future__ import annotations

from typing import Any, Literal

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.bounds import Amount, milliseconds
from clawtrace.assertions.forms.sources import gap_rows
from clawtrace.assertions.forms.total import Sum, Total
from clawtrace.model.query import Query

__all__ = ["TraceDuration"]

_LENGTH = {"wall": "t.last_end_ns - t.first_start_ns", "busy": "t.busy_ns"}

# Whether spans may be missing, their extent where all gaps state one, and the extent of the infrastructure spans.
_JOINS = """LEFT JOIN (
    SELECT p.run_id AS run_id, min(p.start_ns) AS first_ns,
           CASE WHEN count(p.end_ns - p.start_ns) = count(*) THEN max(p.end_ns) END AS last_ns
    FROM gaps AS p
    WHERE p.relation = 'spans'
    GROUP BY p.run_id
  ) AS e ON e.run_id = t.run_id
  LEFT JOIN (
    SELECT p.run_id AS run_id, min(p.start_ns) AS first_ns, max(p.end_ns) AS last_ns
    FROM spans AS p
    JOIN selected_runs AS q ON q.run_id = p.run_id
    WHERE p.kind = 'infra' AND p.duration_ns IS NOT NULL AND p.start_ns > 0
    GROUP BY p.run_id
  ) AS i ON i.run_id = t.run_id"""

_WHOLE = """CASE WHEN i.last_ns > t.last_end_ns THEN i.last_ns ELSE t.last_end_ns END
           - CASE WHEN i.first_ns < t.first_start_ns THEN i.first_ns ELSE t.first_start_ns END"""

_MOST = "e.last_ns - e.first_ns"
"""The longest that a run may have taken of which spans may be missing: their gaps state an extent around the others too."""

_EDGES = Query(f"""
SELECT g.run_id AS run_id, g.span_id AS span_id, g.why AS why, g.reason AS reason,
       row_number() OVER (PARTITION BY g.run_id ORDER BY g.place, g.first DESC, g.span_id) AS rank
FROM (
  SELECT p.run_id AS run_id, p.span_id AS span_id, coalesce(p.duration_ns, 0) AS first, NULL AS reason,
         p.name || ': ' || CASE WHEN p.start_ns = t.first_start_ns AND p.end_ns = t.last_end_ns THEN 'first start and last end'
              WHEN p.start_ns = t.first_start_ns THEN 'first start'
              WHEN p.end_ns = t.last_end_ns THEN 'last end' ELSE 'in between' END AS why,
         CASE WHEN p.start_ns = t.first_start_ns OR p.end_ns = t.last_end_ns THEN 1 ELSE 3 END AS place
  FROM spans AS p
  JOIN selected_runs AS s ON s.run_id = p.run_id
  JOIN run_totals AS t ON t.run_id = p.run_id
  WHERE p.kind <> 'infra'
  UNION ALL
  SELECT DISTINCT d.run_id AS run_id, d.span_id AS span_id, 0 AS first, d.reason AS reason, 'the duration' AS why, 0 AS place
  FROM doubts AS d
  JOIN selected_runs AS s ON s.run_id = d.run_id
  WHERE d.relation = 'run_totals' AND d.column_name IN ('last_end_ns', 'busy_ns')
  UNION ALL
  SELECT h.run_id AS run_id, h.span_id AS span_id, 0 AS first, h.reason AS reason, h.why AS why, 2 AS place
  FROM ({gap_rows("spans")}) AS h
) AS g
""")
"""The span that started first, the one that ended last, then the longest ones; and what is not known."""


class TraceDuration(Assertion):
    """The run took at most `max_ms` milliseconds.

    Measured over the spans of the agent's work (infrastructure spans such as HTTP clients left out): `wall` from the
    first start to the last end, `busy` only the time in which at least one of them was open, idle gaps left out. Where
    the spans left out reach beyond the others, the message also says how long the whole trace took.

    Example:
        - type: trace_duration
          max_ms: 30000
    """

    main_field = "max_ms"
    requires = ("spans.start_ns", "spans.end_ns")

    max_ms: Amount
    """Longest duration, in milliseconds."""
    measure: Literal["wall", "busy"] = "wall"
    """`wall`: first start to last end; `busy`: the union of the spans' intervals."""

    def question(self) -> Sum:
        """Compare the run's length, which spans that nothing records could only lengthen."""
        length = _LENGTH[self.measure]
        high = f"CASE WHEN e.run_id IS NULL THEN {length} ELSE {_MOST} END"
        return Sum(
            "spans.end_ns",
            (Total(f"coalesce({length}, 0)", high, max=round(self.max_ms * 1_000_000)),),
            {"length_ns": length, "wall_ns": _LENGTH["wall"], "whole_ns": _WHOLE},
            joins=_JOINS,
            shown=_EDGES,
        )

    def actual(self, outcome: Outcome) -> Any:
        """Return the duration in milliseconds; None when unknown."""
        length = outcome.row["length_ns"]
        return None if length is None else length / 1e6

    def explain(self, outcome: Outcome) -> str:
        """Return the duration and its limit in words."""
        row, limit = outcome.row, milliseconds(self.max_ms)
        if row["length_ns"] is None:
            return "The duration is unknown: no span of the agent's work has an end, or their clocks contradict each other."
        what = "The agent's work" if self.agent is not None else "The run" if self.turn is None else "The turn"
        how = "" if self.measure == "wall" else " of busy time"
        most = f" to {milliseconds(row['high'] / 1e6, self.max_ms)}" if (row["high"] or 0) > row["length_ns"] else ""
        took = f"{milliseconds(row['length_ns'] / 1e6, self.max_ms)}{most}{how}"
        if outcome.holds is None:
            return f"{what} took {'' if most else 'at least '}{took}, expected at most {limit}."
        said = f"{what} took {took}, {'within' if outcome.holds else 'over'} {limit}"
        wall, whole = row["wall_ns"], row["whole_ns"]
        if wall is None or whole is None or whole <= wall:
            return f"{said}."
        return f"{said}; the whole trace, including infrastructure spans, which do not count, took {milliseconds(whole / 1e6)}."

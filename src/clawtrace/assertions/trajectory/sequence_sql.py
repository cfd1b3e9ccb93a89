"""The SQL of `tool_sequence`: what it settles at once, set-based; the search in Python settles the rest.

In ``met`` is how many expectations are met for sure, in ``overlapping`` 1 when calls ran side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.assertions.forms.order import PatternPart, Short, in_turn

__all__ = ["contains_short", "ordered_short", "strict_short"]

# A call without length is taken as one nanosecond long (clawtrace.assertions.trajectory.trajectory); one that never ended as
# well, and one without a start meets nothing: the search in Python looks at those again.
_ENDS = "CASE WHEN c.end_ns > c.start_ns THEN c.end_ns ELSE c.start_ns + 1 END"

_SIDE_BY_SIDE = PatternPart(
    """(
      SELECT b.run_id AS run_id, b.begins AS begins,
             max(b.ends) OVER (
               PARTITION BY b.run_id ORDER BY b.begins, b.no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
      FROM (SELECT DISTINCT e.run_id AS run_id, e.no AS no, e.begins AS begins, e.ends AS ends FROM meeting AS e) AS b
    ) AS y GROUP BY y.run_id""",
    "y.run_id",
    {"overlapping": "max(CASE WHEN y.begins < y.latest THEN 1 ELSE 0 END)"},
)


def ordered_short(goal: int, *, by_start: bool) -> Short:
    """Return what settles an order of `goal` names, distinct ones unless it is the order of starts."""
    begins, ends = ("c.call_no", "c.call_no") if by_start else ("c.start_ns", _ENDS)
    tables, parts = in_turn("tool_calls", "expected_tools", begins, ends, goal)
    return Short(f"g.met = {goal}", parts=[*parts, *(() if by_start else (_SIDE_BY_SIDE,))], tables=tables, empty=False)


def strict_short(goal: int) -> Short:
    """Return what settles a whole list: the calls by start are these names. The search looks for other orders."""
    tables, _ = in_turn("tool_calls", "expected_tools", "c.start_ns", _ENDS, 0)
    same = PatternPart("meeting AS d WHERE d.item = d.no - 1 GROUP BY d.run_id", "d.run_id", {"met": "count(*)"})
    whole = f"g.met = {goal} AND g.high = {goal} AND g.gaps = 0"
    return Short(whole, parts=[same, _SIDE_BY_SIDE], tables=tables, empty=goal == 0)


def contains_short(needs: Sequence[int]) -> Short:
    """Return what settles a multiset of whole names: expectation i has its ``needs[i]`` calls."""
    enough = " OR ".join(f"(u.item = {item} AND u.n >= {need})" for item, need in enumerate(needs))
    have = f"""(
      SELECT c.run_id AS run_id, m.item AS item, sum(c.n_low) AS n
      FROM run_tools AS c
      JOIN expected_tools AS m ON m.value = c.name
      JOIN selected_runs AS q ON q.run_id = c.run_id
      GROUP BY c.run_id, m.item
    ) AS u WHERE {enough} GROUP BY u.run_id"""
    return Short(f"g.met = {len(needs)}", parts=[PatternPart(have, "u.run_id", {"met": "count(*)"})], empty=False)

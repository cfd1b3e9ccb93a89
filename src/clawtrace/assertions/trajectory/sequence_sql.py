"""The SQL of `tool_sequence`: what it can settle exactly, set-based; the search in Python settles the rest.

Each text answers ``run_id, calls, met, recordable``: `calls` attempts were made, and so many expectations are met for sure.
Those of lists in order also answer ``overlapping``, 1 when calls ran side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from clawtrace.assertions.counting.apart import still_open, tool_calls_apart
from clawtrace.assertions.counting.handoffs import HANDED_OVER, has_handoff

__all__ = ["contains_sql", "details_sql", "evidence_sql", "ordered_sql", "partial_sql", "strict_sql"]

# A call without length is taken as one nanosecond long (clawtrace.assertions.trajectory.trajectory); one that never ended as
# well, and one without a start meets nothing: the search in Python looks at those again.
_ENDS = "CASE WHEN c.end_ns > c.start_ns THEN c.end_ns ELSE c.start_ns + 1 END"

# One row for each expectation that a call meets, of the calls with a start: names are compared once and not in each step.
_MEETING = f"""meeting AS (
  SELECT c.run_id AS run_id, c.call_no AS call_no, c.start_ns AS begins, {_ENDS} AS ends, m.item AS item
  FROM tool_calls AS c
  JOIN expected_tools AS m ON m.value = c.name
  JOIN selected_runs AS s ON s.run_id = c.run_id
  WHERE c.outcome NOT IN ('requested', 'unexecuted') AND c.start_ns IS NOT NULL
)"""

_LATEST = """max({0}.ends) OVER (
           PARTITION BY {0}.run_id ORDER BY {0}.begins, {0}.call_no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest"""
"""The latest end of the calls that began before one."""

_WITHOUT_CALLS = f"(g.calls = 0 AND NOT {has_handoff('g.run_id')})"
"""A run without any call: nothing is left to search, and no handoff could be what was meant."""


class _UnionPart(NamedTuple):
    """One part of the union that becomes one row a run."""

    source: str
    run_id: str
    columns: Mapping[str, str]


_TOTALS = _UnionPart(
    "run_totals AS t JOIN selected_runs AS q ON q.run_id = t.run_id",
    "t.run_id",
    {"has_trace": "1", "recordable": "CASE WHEN t.tool_calls IS NULL THEN 0 ELSE 1 END"},
)
_ATTEMPTS = _UnionPart(
    "tool_calls AS a JOIN selected_runs AS q ON q.run_id = a.run_id\n"
    "    WHERE a.outcome NOT IN ('requested', 'unexecuted') GROUP BY a.run_id",
    "a.run_id",
    {"calls": "count(*)"},
)
_SIDE_BY_SIDE = _UnionPart(
    f"""(
      SELECT b.run_id AS run_id, b.begins AS begins, {_LATEST.format("b")}
      FROM meeting AS b
    ) AS y GROUP BY y.run_id""",
    "y.run_id",
    {"overlapping": "max(CASE WHEN y.begins < y.latest THEN 1 ELSE 0 END)"},
)


def _combined(tables: Sequence[str], parts: Sequence[_UnionPart], answer: str) -> str:
    """Combine the parts into one row a run, and add the columns `answer` over the alias ``g``."""
    columns = dict.fromkeys(
        ("has_trace", "recordable", "calls", "met", *(name for part in parts for name in part.columns))
    )
    union = "\n    UNION ALL\n".join(
        f"    SELECT {part.run_id} AS run_id, "
        + ", ".join(f"{part.columns.get(name, '0')} AS {name}" for name in columns)
        + f"\n    FROM {part.source}"
        for part in parts
    )
    with_ = f"WITH {', '.join(tables)}\n" if tables else ""
    return f"""{with_}SELECT g.run_id AS run_id, {", ".join(f"g.{name} AS {name}" for name in columns if name != "has_trace")},
       {answer}
FROM (
  SELECT f.run_id AS run_id, {", ".join(f"max(f.{name}) AS {name}" for name in columns)}
  FROM (
{union}
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
"""


def _grown(expected: int) -> str:
    """Columns of a question that more calls can only answer with yes; a run that cannot show tools is unknown.

    What does not hold is settled in Python, which has the names to show.
    """
    holds = f"g.met = {expected}"
    return f"""CASE WHEN {holds} THEN TRUE WHEN g.recordable = 1 AND g.calls = 0 THEN FALSE ELSE NULL END AS holds,
       CASE WHEN g.met < {expected} AND g.recordable = 0 THEN 'tool_calls' ELSE NULL END AS missing,
       CASE WHEN {holds} OR {_WITHOUT_CALLS} THEN TRUE ELSE FALSE END AS settled,
       CASE WHEN {holds} AND NOT {still_open("g.run_id")} THEN TRUE ELSE FALSE END AS final"""


def ordered_sql(expected: int) -> str:
    """Return SQL for an ordered expectation of `expected` distinct names: the runs where it holds.

    For distinct names the running maximum of starts is exact, also where calls overlap (spec: assertions.md §3).
    """
    tables = [_MEETING, *(f"step_{item} AS (\n{_step(item)}\n)" for item in range(expected))]
    steps = [_UnionPart(f"step_{item} AS d", "d.run_id", {"met": str(item + 1)}) for item in range(expected)]
    return _combined(tables, [_TOTALS, _ATTEMPTS, _SIDE_BY_SIDE, *steps], _grown(expected))


def _step(item: int) -> str:
    """The earliest start among the calls that end after every start chosen so far; kept: the latest start."""
    if not item:
        return "SELECT k.run_id AS run_id, min(k.begins) AS latest FROM meeting AS k WHERE k.item = 0 GROUP BY k.run_id"
    return f"""SELECT k.run_id AS run_id,
       CASE WHEN min(k.begins) > max(p.latest) THEN min(k.begins) ELSE max(p.latest) END AS latest
FROM meeting AS k JOIN step_{item - 1} AS p ON p.run_id = k.run_id
WHERE k.ends > p.latest AND k.item = {item}
GROUP BY k.run_id"""


def strict_sql(expected: int) -> str:
    """Return SQL for a strict expectation: the runs whose attempts, by start, are exactly the expected names.

    Where another order is possible, the search in Python looks for it.
    """
    placed = f"""placed AS (
  SELECT n.run_id AS run_id, n.tool AS tool, n.begins AS begins,
         row_number() OVER (PARTITION BY n.run_id ORDER BY n.call_no) AS place,
         {_LATEST.format("n")}
  FROM (
    SELECT c.run_id AS run_id, c.call_no AS call_no, c.start_ns AS begins, {_ENDS} AS ends,
           CASE WHEN c.start_ns IS NULL THEN NULL ELSE c.name END AS tool
    FROM tool_calls AS c
    JOIN selected_runs AS s ON s.run_id = c.run_id
    WHERE c.outcome NOT IN ('requested', 'unexecuted')
  ) AS n
)"""
    named = "d.tool IN (SELECT m.value FROM expected_tools AS m WHERE m.item = {})"
    right = " OR ".join(f"(d.place = {item + 1} AND {named.format(item)})" for item in range(expected)) or "1 = 0"
    columns = {
        "calls": "count(*)",
        "met": f"sum(CASE WHEN {right} THEN 1 ELSE 0 END)",
        "overlapping": "max(CASE WHEN d.begins < d.latest THEN 1 ELSE 0 END)",
    }
    same = f"g.calls = {expected} AND g.met = {expected}"
    answer = f"""CASE WHEN g.recordable = 1 AND {same} THEN TRUE WHEN g.calls > {expected} THEN FALSE ELSE NULL END AS holds,
       CASE WHEN g.calls <= {expected} AND g.recordable = 0 THEN 'tool_calls' ELSE NULL END AS missing,
       CASE WHEN (g.recordable = 0 AND g.calls <= {expected}) OR ({same}) THEN TRUE ELSE FALSE END AS settled,
       FALSE AS final"""
    return _combined([placed], [_UnionPart("placed AS d GROUP BY d.run_id", "d.run_id", columns), _TOTALS], answer)


def contains_sql(needs: Sequence[int]) -> str:
    """Return SQL for a multiset of whole names: the runs where expectation i has its ``needs[i]`` calls."""
    enough = " OR ".join(f"(u.item = {item} AND u.n >= {need})" for item, need in enumerate(needs))
    have = f"""(
      SELECT c.run_id AS run_id, m.item AS item, count(*) AS n
      FROM tool_calls AS c
      JOIN expected_tools AS m ON m.value = c.name
      JOIN selected_runs AS s ON s.run_id = c.run_id
      WHERE c.outcome NOT IN ('requested', 'unexecuted')
      GROUP BY c.run_id, m.item
    ) AS u WHERE {enough} GROUP BY u.run_id"""
    return _combined([], [_TOTALS, _ATTEMPTS, _UnionPart(have, "u.run_id", {"met": "count(*)"})], _grown(len(needs)))


def partial_sql(*, without_calls: bool) -> str:
    """Return SQL for what only the search answers: it settles the runs without any call, with `without_calls`."""
    answer = f"""CASE WHEN g.calls > 0 OR g.recordable = 0 THEN NULL ELSE {"TRUE" if without_calls else "FALSE"} END AS holds,
       CASE WHEN g.recordable = 0 THEN 'tool_calls' ELSE NULL END AS missing,
       CASE WHEN {_WITHOUT_CALLS} THEN TRUE ELSE FALSE END AS settled, FALSE AS final"""
    return _combined([], [_TOTALS, _ATTEMPTS], answer)


def details_sql() -> str:
    """Return SQL for the attempts of the runs that are left to Python, by start, and for tools that only handed over.

    In each row the same: ``still_open``, whether the run is; ``apart``, how many of its calls then stay apart whichever
    spans still come, NULL for none. ``apart_of_name`` is the same of the calls of this name. ``handed_over`` is 1 for the name of a tool that is a handoff and no call.
    """
    return f"""
SELECT d.run_id AS run_id, d.tool AS tool, d.start_ns AS start_ns, d.end_ns AS end_ns, d.apart AS apart,
       d.apart_of_name AS apart_of_name,
       d.still_open AS still_open, d.handed_over AS handed_over
FROM (
  SELECT c.run_id AS run_id, c.call_no AS place, c.name AS tool, c.start_ns AS start_ns, c.end_ns AS end_ns, z.n AS apart, y.n AS apart_of_name,
         CASE WHEN {still_open("c.run_id")} THEN 1 ELSE 0 END AS still_open, 0 AS handed_over
  FROM tool_calls AS c
  JOIN selected_runs AS s ON s.run_id = c.run_id
  LEFT JOIN (
    SELECT k.run_id AS run_id, max(k.n) AS n FROM ({tool_calls_apart(still_open("c.run_id"))}) AS k GROUP BY k.run_id
  ) AS z ON z.run_id = c.run_id
  LEFT JOIN (
    SELECT h.run_id AS run_id, h.name AS name, max(h.n) AS n
    FROM ({tool_calls_apart(still_open("c.run_id"), by_name=True)}) AS h GROUP BY h.run_id, h.name
  ) AS y ON y.run_id = c.run_id AND y.name = c.name
  WHERE c.outcome NOT IN ('requested', 'unexecuted')
  UNION ALL
  SELECT b.run_id AS run_id, 0 AS place, b.name AS tool, NULL AS start_ns, NULL AS end_ns, NULL AS apart, NULL AS apart_of_name,
         0 AS still_open, 1 AS handed_over
  FROM ({HANDED_OVER}) AS b
) AS d
ORDER BY d.run_id, d.handed_over, d.place, d.tool
"""


def evidence_sql(*, unexpected_first: bool) -> str:
    """Return SQL for the attempts by start, the unexpected ones first for a strict list, else the expected ones."""
    weights = "0 ELSE 1" if not unexpected_first else "1 ELSE 0"
    return f"""
SELECT c.run_id AS run_id, c.span_id AS span_id,
       'tool call ' || c.place || ': ' || coalesce(c.tool, '(tool without a name)') || ', ' || c.outcome AS why,
       row_number() OVER (
         PARTITION BY c.run_id
         ORDER BY CASE WHEN c.tool IN (SELECT m.value FROM expected_tools AS m) THEN {weights} END, c.place) AS rank
FROM (
  SELECT r.run_id AS run_id, r.span_id AS span_id, r.name AS tool, r.outcome AS outcome,
         row_number() OVER (PARTITION BY r.run_id ORDER BY r.call_no) AS place
  FROM tool_calls AS r
  JOIN selected_runs AS s ON s.run_id = r.run_id
  WHERE r.outcome NOT IN ('requested', 'unexecuted')
) AS c
"""

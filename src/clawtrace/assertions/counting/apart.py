"""Calls that stay apart: how many calls of a run cannot become fewer, whichever spans still come.

Of a run that is still open more spans bring more calls, and they can also show that two calls are one: a wrapper around both, a second
instrumentation that records the same call. So a count is final only as far as the counted calls stay apart. These do:
calls that one scope records, none inside another, each with all its ancestors received up to a span without a parent.
For spans of one scope are one call only where one is inside the other, and what is inside what is known then.
A model call must also have been answered by its span's own words: a layer that failed could take the answer back.
"""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.assertions.base import Row

__all__ = ["apart", "model_calls_apart", "still_open", "tool_calls_apart"]

_TO_THE_TOP = """JOIN spans AS r ON r.run_id = p.run_id AND r.trace_id = p.trace_id AND r.span_id = p.root_span_id
WHERE r.parent_span_id IS NULL AND p.source = 'otlp'"""


def still_open(run_id: str) -> str:
    """Return a SQL condition: more spans may come of the run whose id is the expression `run_id`."""
    return f"{run_id} IN (SELECT w.run_id FROM runs AS w WHERE w.closed_by IS NULL)"


def tool_calls_apart(matching: str, *, by_name: bool = False) -> str:
    """Return SQL of the tool calls that stay apart, as ``run_id, scope, n``; `matching` is a condition on ``c.name``.

    With `by_name` each name is counted by itself, as ``run_id, scope, name, n``.
    """
    name = "c.name AS name, " if by_name else ""
    return f"""
SELECT p.run_id AS run_id, p.scope AS scope, {name}count(DISTINCT c.call_no) AS n
FROM tool_calls AS c
JOIN selected_runs AS q ON q.run_id = c.run_id
JOIN spans AS p ON p.run_id = c.run_id AND p.counted_in = c.span_id
{_TO_THE_TOP} AND p.kind = 'tool' AND c.outcome NOT IN ('requested', 'unexecuted') AND {matching}
GROUP BY p.run_id, p.scope{", c.name" if by_name else ""}
"""


def model_calls_apart() -> str:
    """Return SQL of the answered model calls that stay apart, as ``run_id, scope, n``."""
    return f"""
SELECT p.run_id AS run_id, p.scope AS scope, count(*) AS n
FROM (
  SELECT m.run_id AS run_id, m.trace_id AS trace_id, m.root_span_id AS root_span_id, m.scope AS scope, m.source AS source,
         m.tree_enter AS tree_enter, m.counted_as AS counted_as, m.error AS error, m.response_model AS response_model,
         m.output_tokens AS output_tokens,
         max(m.tree_leave) OVER (
           PARTITION BY m.run_id ORDER BY m.tree_enter ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS around
  FROM spans AS m
  JOIN selected_runs AS s ON s.run_id = m.run_id
  WHERE m.kind = 'llm'
) AS p
{_TO_THE_TOP} AND (p.around IS NULL OR p.around < p.tree_enter) AND p.counted_as <> 'accounting'
  AND p.error IS NULL AND (p.response_model IS NOT NULL OR p.output_tokens IS NOT NULL)
GROUP BY p.run_id, p.scope
"""


def apart(details: Sequence[Row]) -> int:
    """Return how many calls stay apart at least: two scopes may record the same ones, so that they do not add up."""
    return max((row["n"] for row in details), default=0)

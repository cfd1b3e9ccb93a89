"""Tools that hand over to another agent: an assertion names them, but they are delegations, not tool calls.

Frameworks give the model a tool for it. A question about that name is answered by a count of zero, which misleads without
a word about the handoff.
"""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.assertions.base import Outcome, Row
from clawtrace.assertions.matching.matchers import Matcher

__all__ = ["HANDED_OVER", "handed_over", "handoff_words", "has_handoff"]

HANDED_OVER = """
SELECT n.run_id AS run_id, n.name AS name
FROM (
  SELECT p.run_id AS run_id, p.tool_name AS name
  FROM spans AS p
  JOIN selected_runs AS s ON s.run_id = p.run_id
  WHERE p.tool_name IS NOT NULL AND ((p.kind <> 'tool' AND p.counted_as = 'none') OR p.counted_by = 'handoff-tool')
  UNION DISTINCT
  SELECT m.run_id AS run_id, m.name AS name
  FROM agents AS h
  JOIN selected_runs AS s ON s.run_id = h.run_id
  JOIN agents AS g ON g.run_id = h.run_id AND g.activation_no = h.parent_activation_no
  JOIN llm_calls AS c ON c.run_id = g.run_id AND c.agent_span_id = g.span_id
  JOIN messages AS m ON m.run_id = c.run_id AND m.span_id = c.span_id
  WHERE h.via = 'handoff' AND c.start_ns <= h.start_ns AND m.direction = 'output' AND m.type = 'tool_call'
    AND m.name IS NOT NULL
) AS n
LEFT JOIN run_tools AS r ON r.run_id = n.run_id AND r.name = n.name
WHERE r.run_id IS NULL
ORDER BY run_id, name
"""
"""By run the names of tools that only handed over: no tool call has them."""


def has_handoff(run_id: str) -> str:
    """Return an SQL condition that is true of a run in which an agent handed over to another one."""
    return (
        f"{run_id} IN (SELECT h.run_id FROM agents AS h JOIN selected_runs AS q ON q.run_id = h.run_id "
        "WHERE h.via = 'handoff')"
    )


def handed_over(outcome: Outcome, details: Sequence[Row], *tools: Matcher) -> Outcome:
    """Return the outcome with the first name of `HANDED_OVER` that is meant, where one is."""
    name = next((row["name"] for row in details if any(tool(row["name"]) for tool in tools)), None)
    return outcome if name is None else outcome._replace(row={**outcome.row, "handed_over": name})


def handoff_words(outcome: Outcome) -> str:
    """Return a sentence about the handoff, behind a space; empty where there was none of that name."""
    name = outcome.row.get("handed_over")
    if name is None:
        return ""
    return f" `{name}` handed over to another agent, which is a delegation, not a tool call: use `delegation_occurred`."

"""Tool attempts: how often tools were executed, failed or were blocked, as one query that several assertions ask.

A call that the model only requested (`requested`) is not an attempt. A call whose outcome is unknown was executed or
blocked: an attempt, but perhaps a blocked one. A call without a name may be any tool's.
"""

from __future__ import annotations

from clawtrace.assertions.base import Outcome
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.counting.everything import EVERY_ATTEMPT, EVERY_TOOL_CALL
from clawtrace.assertions.counting.handoffs import has_handoff

__all__ = ["attempts_evidence", "attempts_query", "counted_attempts", "describe_attempts"]


def attempts_query(matching: str, *, found: bool, count_blocked: bool = True, handoffs: bool = False) -> str:
    """Return SQL that counts the attempts of the tools for which `matching` is true.

    Args:
        matching: SQL condition on ``r.name``.
        found: what `holds` is when an attempt was found; where none may be found, work that a timer started is looked at, too.
        count_blocked: whether a blocked attempt counts.
        handoffs: whether a run without an attempt is left open where an agent handed over (`_handoffs.py`).
    """
    sure, doubt, unclear = "g.ok + g.failed + g.blocked + g.unclear", "g.nameless", ""
    if not count_blocked:
        sure, doubt, unclear = (
            "g.ok + g.failed",
            "g.nameless + g.unclear",
            " WHEN g.unclear > 0 THEN 'tool_calls.outcome'",
        )
    yes, no = ("TRUE", "FALSE") if found else ("FALSE", "TRUE")

    attempted = "g.ok + g.failed + g.blocked + g.unclear"
    waits = (
        f",\n       CASE WHEN {attempted} = 0 AND {has_handoff('g.run_id')} THEN FALSE ELSE TRUE END AS settled"
        if handoffs
        else ""
    )
    tool = "r.name" if count_blocked else "CASE WHEN r.outcome IN ('ok', 'error') THEN r.name END"
    return f"""
SELECT g.run_id AS run_id, g.ok AS ok, g.failed AS failed, g.blocked AS blocked, g.unclear AS unclear,
       g.nameless AS nameless, g.first_tool AS first_tool, g.last_tool AS last_tool,
       CASE WHEN {sure} > 0 THEN {yes} WHEN g.recordable = 0 OR {doubt} > 0 THEN NULL ELSE {no} END AS holds,
       CASE WHEN {sure} > 0 THEN NULL WHEN g.recordable = 0 THEN 'tool_calls'
            WHEN g.nameless > 0 THEN 'tool_calls.name'{unclear} ELSE NULL END AS missing{waits}
{counted_attempts(matching, tool, everywhere=not found)}
WHERE g.has_trace = 1
"""


def counted_attempts(matching: str, tool: str = "r.name", *, everywhere: bool = False) -> str:
    """Return ``FROM (…) AS g``: for each selected run the attempts by outcome, ``recordable`` and ``has_trace``.

    Args:
        matching: SQL condition on ``r.name``; attempts without a name are counted apart, regardless of it.
        tool: SQL for the names from which ``first_tool`` and ``last_tool`` are taken.
        everywhere: whether attempts in work that a timer started are among them.
    """
    return f"""FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.recordable) AS recordable,
         {_total("ok")}, {_total("failed")}, {_total("blocked")},
         {_total("unclear")}, {_total("nameless")},
         min(f.tool) AS first_tool, max(f.tool) AS last_tool
  FROM (
{_rows(matching, tool, everywhere=everywhere)}  ) AS f
  JOIN selected_runs AS s ON s.run_id = f.run_id
  GROUP BY f.run_id
) AS g"""


def _rows(matching: str, tool: str, *, everywhere: bool) -> str:
    """One row for each run with a trace, for each tool and outcome that `matching` selects, and each nameless call.

    A store need not list nameless calls in ``run_tools``: that relation is by name.
    """
    return f"""    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.tool_calls IS NULL THEN 0 ELSE 1 END AS recordable,
           0 AS ok, 0 AS failed, 0 AS blocked, 0 AS unclear, 0 AS nameless, NULL AS tool
    FROM run_totals AS t
    UNION ALL
    SELECT r.run_id AS run_id, 0 AS has_trace, 0 AS recordable,
           {_named("ok", "ok")}, {_named("error", "failed")},
           {_named("blocked", "blocked")}, {_named("unknown", "unclear")},
           0 AS nameless, {tool} AS tool
    FROM {EVERY_ATTEMPT if everywhere else "run_tools"} AS r
    WHERE r.outcome NOT IN ('requested', 'unexecuted') AND r.name IS NOT NULL AND {matching}
    UNION ALL
    SELECT c.run_id AS run_id, 0 AS has_trace, 0 AS recordable, 0 AS ok, 0 AS failed, 0 AS blocked, 0 AS unclear,
           1 AS nameless, NULL AS tool
    FROM {EVERY_TOOL_CALL if everywhere else "tool_calls"} AS c
    WHERE c.outcome NOT IN ('requested', 'unexecuted') AND c.name IS NULL
"""


def _named(outcome: str, column: str) -> str:
    return f"CASE WHEN r.outcome = '{outcome}' THEN r.n ELSE 0 END AS {column}"


def _total(column: str) -> str:
    # Sums of bigint are 128 bits wide in DuckDB, and three times as slow to fetch.
    return f"CAST(sum(f.{column}) AS bigint) AS {column}"


def attempts_evidence(matching: str, *, count_blocked: bool = True, everywhere: bool = False) -> str:
    """Return SQL for the attempts that `matching` (a condition on ``r.name``) selects, and the nameless ones.

    Args:
        matching: SQL condition on ``r.name``.
        count_blocked: whether a blocked attempt counts.
        everywhere: whether attempts in work that a timer started are among them.
    """
    blocked = "" if count_blocked else " AND r.outcome <> 'blocked'"
    return f"""
SELECT r.run_id AS run_id, r.span_id AS span_id,
       coalesce(r.name, '(tool without a name)') || ': ' || r.outcome
         || CASE WHEN r.error IS NULL THEN '' ELSE ': ' || r.error END AS why,
       row_number() OVER (
         PARTITION BY r.run_id ORDER BY CASE WHEN r.name IS NULL THEN 1 ELSE 0 END, r.call_no) AS rank
FROM {EVERY_TOOL_CALL if everywhere else "tool_calls"} AS r
JOIN selected_runs AS s ON s.run_id = r.run_id
WHERE r.outcome NOT IN ('requested', 'unexecuted') AND (r.name IS NULL OR {matching}){blocked}
"""


def describe_attempts(outcome: Outcome) -> str:
    """Say the counted attempts by outcome: "3 times (1 ok, 2 blocked)"."""
    row = outcome.row
    parts = {"ok": row["ok"], "failed": row["failed"], "blocked": row["blocked"], "unknown outcome": row["unclear"]}
    listed = ", ".join(f"{count} {name}" for name, count in parts.items() if count)
    return f"{plural(sum(parts.values()), 'time')} ({listed})" if listed else "0 times"

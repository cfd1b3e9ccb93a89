"""What `clawtrace inspect --json` prints: the normalised facts of each run (spec: cli.md, `clawtrace.inspect/1`)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from clawtrace.facts.runs.totals import exact_cost
from clawtrace.model.query import Query
from clawtrace.model.relations import NOT_EXECUTED
from clawtrace.store.api import QueryableStore

__all__ = ["SCHEMA", "inspect_runs"]

SCHEMA = "clawtrace.inspect/1"

_DEEP = 500
"""Brackets from which on a value may be nested more deeply than JSON writers follow."""

_OWNER = """
WITH owners AS (
    SELECT a.run_id AS run_id, a.span_id AS span_id, a.name AS name FROM agents AS a WHERE a.span_id IS NOT NULL
)
"""

_RUNS = """
SELECT s.run_id, r.complete, r.incomplete_because, r.started_ns, r.ended_ns, r.final_output, r.closed_by
FROM selected_runs AS s LEFT JOIN runs AS r ON r.run_id = s.run_id
"""

_SPANS = """
SELECT p.run_id AS run_id, count(*) AS spans, count(DISTINCT p.trace_id) AS traces,
       max(CASE WHEN p.duration_ns IS NOT NULL AND p.start_ns > 0 THEN p.end_ns END)
         - min(CASE WHEN p.start_ns > 0 THEN p.start_ns END) AS whole_ns
FROM spans AS p JOIN selected_runs AS s ON s.run_id = p.run_id GROUP BY p.run_id
"""

_DIALECTS = """
SELECT DISTINCT p.run_id AS run_id, p.dialect AS dialect
FROM spans AS p JOIN selected_runs AS s ON s.run_id = p.run_id
WHERE p.dialect <> 'opentelemetry' ORDER BY p.run_id, p.dialect
"""

_LLM_CALLS = (
    _OWNER
    + """
SELECT c.run_id AS run_id, c.span_id AS span_id, o.name AS agent, c.request_model AS request_model,
       c.response_model AS response_model, c.provider AS provider, c.input_tokens AS input_tokens,
       c.output_tokens AS output_tokens, c.cache_read_tokens AS cache_read_tokens,
       c.cache_write_tokens AS cache_write_tokens, c.reasoning_tokens AS reasoning_tokens, c.cost_usd AS cost_usd,
       c.cost_source AS cost_source, c.error AS error, c.start_ns AS start_ns, c.end_ns AS end_ns
FROM llm_calls AS c
JOIN selected_runs AS s ON s.run_id = c.run_id
LEFT JOIN owners AS o ON o.run_id = c.run_id AND o.span_id = c.agent_span_id
WHERE c.outcome = 'ok'
ORDER BY c.run_id, c.call_no
"""
)

_TOOL_CALLS = (
    _OWNER
    + """
SELECT c.run_id AS run_id, c.span_id AS span_id, o.name AS agent, c.name AS name, c.call_id AS call_id,
       c.arguments AS arguments, c.result AS result, c.outcome AS outcome, c.error AS error, c.start_ns AS start_ns,
       c.end_ns AS end_ns
FROM tool_calls AS c
JOIN selected_runs AS s ON s.run_id = c.run_id
LEFT JOIN owners AS o ON o.run_id = c.run_id AND o.span_id = c.agent_span_id
ORDER BY c.run_id, c.call_no
"""
)

_AGENTS = """
SELECT a.run_id AS run_id, a.name AS name, a.span_id AS span_id, p.name AS parent,
       a.parent_activation_no AS parent_no, a.via AS via
FROM agents AS a
JOIN selected_runs AS s ON s.run_id = a.run_id
LEFT JOIN agents AS p ON p.run_id = a.run_id AND p.activation_no = a.parent_activation_no
ORDER BY a.run_id, a.activation_no
"""

_ERRORS = """
SELECT e.run_id AS run_id, e.span_id AS span_id, e.name AS name, e.message AS message, e.recovered AS recovered
FROM errors AS e JOIN selected_runs AS s ON s.run_id = e.run_id
"""

_TOTALS = "SELECT t.* FROM run_totals AS t JOIN selected_runs AS s ON s.run_id = t.run_id"

_COUNTED = """
SELECT p.run_id AS run_id, p.kind AS kind, p.counted_as AS counted_as, count(*) AS n,
       sum(CASE WHEN p.input_tokens IS NOT NULL OR p.output_tokens IS NOT NULL THEN 1 ELSE 0 END) AS with_usage
FROM spans AS p JOIN selected_runs AS s ON s.run_id = p.run_id
GROUP BY p.run_id, p.kind, p.counted_as
ORDER BY p.run_id, p.kind, p.counted_as
"""

_UNKNOWN = """
SELECT u.run_id AS run_id, u.fact AS fact, u.reason AS reason, u.lacking AS lacking, u.of_calls AS of_calls,
       u.span_id AS span_id, u.dialect AS dialect
FROM unknown_facts AS u JOIN selected_runs AS s ON s.run_id = u.run_id
ORDER BY u.run_id, u.fact
"""

_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def inspect_runs(store: QueryableStore, run_ids: Sequence[str]) -> dict[str, Any]:
    """Return the facts of `run_ids` in the contract's form; facts must be current. Unknown is None, never 0 or []."""
    store.select_runs(run_ids)
    by_run = {
        name: _grouped(store, sql)
        for name, sql in (
            ("runs", _RUNS), ("spans", _SPANS), ("dialects", _DIALECTS), ("llm_calls", _LLM_CALLS),
            ("tool_calls", _TOOL_CALLS), ("agents", _AGENTS), ("errors", _ERRORS), ("totals", _TOTALS),
            ("counted", _COUNTED), ("unknown", _UNKNOWN),
        )
    }  # fmt: skip
    return {"schema": SCHEMA, "runs": [_run(run_id, by_run) for run_id in run_ids]}


def _grouped(store: QueryableStore, sql: str) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in store.ask(Query(sql)).dicts():
        rows.setdefault(row.pop("run_id"), []).append(row)
    return rows


def _run(run_id: str, by_run: dict[str, dict[str, list[dict[str, Any]]]]) -> dict[str, Any]:
    facts = {name: rows.get(run_id, []) for name, rows in by_run.items()}
    run = facts["runs"][0]
    totals = facts["totals"][0] if facts["totals"] else None
    counts = facts["spans"][0] if facts["spans"] else {"spans": 0, "traces": 0, "whole_ns": None}
    started, ended = run["started_ns"], run["ended_ns"]
    knows_tools = totals is not None and totals["tool_calls"] is not None
    return {
        "run_id": run_id,
        "complete": run["complete"],
        "incomplete_because": [reason["message"] for reason in json.loads(run["incomplete_because"] or "[]")],
        "closed_by": run["closed_by"],
        "traces": counts["traces"],
        "spans": counts["spans"],
        "dialects": [row["dialect"] for row in facts["dialects"]],
        "started_at": None if started is None else _iso(started),
        "duration_ms": _ms(_between(started, ended)),
        "work_ms": _ms(_between(totals["first_start_ns"], totals["last_end_ns"])) if totals else None,
        "whole_trace_ms": _ms(counts["whole_ns"]),
        "final_output": run["final_output"],
        "llm_calls": _llm_calls(facts["llm_calls"], totals),
        "tool_calls": [_tool_call(row) for row in facts["tool_calls"]] if knows_tools else None,
        **_agents(facts["agents"], totals),
        "errors": facts["errors"] if totals is not None and totals["errors"] is not None else None,
        "totals": _totals(totals),
        "unknown": facts["unknown"],
        "reconciliation": _reconciliation(facts["counted"], len(facts["llm_calls"]), facts["tool_calls"], totals or {}),
    }


def _between(start_ns: int | None, end_ns: int | None) -> int | None:
    return None if start_ns is None or end_ns is None else end_ns - start_ns


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 3)


def _llm_calls(rows: list[dict[str, Any]], totals: dict[str, Any] | None) -> list[dict[str, Any]] | None:
    """Return the answered calls; None where they are not known, one by one, though their number may be."""
    if totals is None or totals["llm_calls"] is None or totals["llm_calls"] != len(rows):
        return None
    return rows


def _tool_call(row: dict[str, Any]) -> dict[str, Any]:
    """Return the call with its arguments as a JSON value; text that is no JSON stays text."""
    arguments = row["arguments"]
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError, RecursionError):
            parsed = json.loads(arguments)
            if arguments.count("[") + arguments.count("{") > _DEEP:
                json.dumps(parsed)  # what is nested too deeply to be written stays text
            arguments = parsed
    return {**row, "arguments": arguments}


def _agents(rows: list[dict[str, Any]], totals: dict[str, Any] | None) -> dict[str, Any]:
    """Return `agents` and `delegations`: None where an activation that counts for them has no name."""
    if totals is None or totals["agents"] is None:
        return {"agents": None, "delegations": None}
    nameless = any(row["name"] is None for row in rows)
    nested = [row for row in rows if row["parent_no"] is not None]
    called = [row for row in rows if row["via"] in ("tool", "handoff", "spawn") and row["parent_no"] is None]
    unsure = called or any(row["name"] is None or row["parent"] is None for row in nested)
    pairs = dict.fromkeys((row["parent"], row["name"]) for row in nested)
    return {
        "agents": None if nameless else [{key: row[key] for key in ("name", "span_id", "parent")} for row in rows],
        "delegations": None if unsure else [list(pair) for pair in pairs],
    }


def _totals(totals: dict[str, Any] | None) -> dict[str, Any]:
    names = ("llm_calls", "failed_llm_attempts", "tool_calls", *_TOKENS)
    if totals is None:
        return {**dict.fromkeys(names), "cost_usd": None, "cost_high": None, "priced_calls": None}
    bound = totals["cost_high"] if totals["priced_calls"] or totals["cost_high"] else None
    return {
        **{name: totals[name] for name in names},
        "cost_usd": exact_cost(totals),
        "cost_high": bound,
        "priced_calls": totals["priced_calls"],
    }


_REPEATED = ("agent span repeats its children", "agent spans repeat their children")
_STATED = ("states usage of calls that were not recorded", "state usage of calls that were not recorded")


def _reconciliation(
    rows: list[dict[str, Any]], answered: int, tool_calls: list[dict[str, Any]], totals: dict[str, Any]
) -> list[str]:
    """Return how raw spans became calls, one line for model calls and one for tool calls: the numbers add up.

    They are those of the totals: answered model calls, and attempts of tools. Where a total is unknown, the calls are those
    that were recorded.
    """
    lines = []
    usage = sum(row["with_usage"] for row in rows)
    calls = _n(rows, "llm", "call")
    if usage or calls:
        failed = "call that got no answer is not counted", "calls that got no answer are not counted"
        why = [
            _count(calls - answered, *failed),
            _count(calls - _n(rows, "llm", "call", "with_usage"), "call without usage", "calls without usage"),
            _count(_n(rows, "llm", "wrapper"), "wraps the call's span", "wrap the call's span"),
            _count(_n(rows, "llm", "duplicate"), "repeats the same call", "repeat the same call"),
            _count(_n(rows, None, "accounting", "with_usage"), *(_REPEATED if calls else _STATED)),
        ]
        lines.append(_line(usage, "span", " with usage", answered, _noun(totals, "llm_calls", "model call"), why))
    tools = _n(rows, "tool", None)
    counted = _n(rows, "tool", "call")
    unseen = max(sum(call["outcome"] not in NOT_EXECUTED for call in tool_calls) - counted, 0)
    if tools or unseen:
        why = [
            _count(_n(rows, "tool", "duplicate"), "repeats the same call", "repeat the same call"),
            _count(tools - counted - _n(rows, "tool", "duplicate"), "is not a call", "are not calls"),
            _count(unseen, "call known from messages only", "calls known from messages only"),
        ]
        lines.append(_line(tools, "tool span", "", counted + unseen, _noun(totals, "tool_calls", "tool call"), why))
    return lines


def _noun(totals: dict[str, Any], total: str, noun: str) -> str:
    return noun if totals.get(total) is not None else f"recorded {noun}"


def _n(rows: list[dict[str, Any]], kind: str | None, counted_as: str | None, what: str = "n") -> int:
    return sum(row[what] for row in rows if kind in (None, row["kind"]) and counted_as in (None, row["counted_as"]))


def _count(number: int, one: str, many: str | None = None) -> str:
    """Return the number with its words, an empty text for none."""
    if not number:
        return ""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _line(spans: int, of: str, which: str, calls: int, noun: str, why: list[str]) -> str:
    reasons = ", ".join(filter(None, why))
    return f"{spans} {of}{'' if spans == 1 else 's'}{which} -> {_count(calls, noun) or f'0 {noun}s'}" + (
        f": {reasons}" if reasons else ""
    )


def _iso(ns: int) -> str:
    moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns // 1_000_000 % 1000:03d}Z"

"""The output of `clawtrace inspect --json`: the normalised facts of each run (spec: cli.md, `clawtrace.inspect/1`)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from clawtrace.dialects.load import Dialect
from clawtrace.facts.facts import fact_states
from clawtrace.model.reasons import REASONS
from clawtrace.model.relations import COUNTED, RELATIONS
from clawtrace.store.api import QueryableStore
from clawtrace.verdicts.coverage import content_hint, usage_hint
from clawtrace.verdicts.reading.known_totals import as_received, bounded, exact
from clawtrace.verdicts.reading.rows import by_run, rows_sql

__all__ = ["SCHEMA", "inspect_runs"]

SCHEMA = "clawtrace.inspect/1"

_DEEP = 500
"""Brackets from which on a value may be nested more deeply than JSON writers follow."""

_RUNS = """
SELECT s.run_id, r.complete, r.incomplete_because, r.started_ns, r.ended_ns, r.final_output, r.closed_by, r.cassette
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


_COUNTED = """
SELECT p.run_id AS run_id, p.kind AS kind, p.counted_as AS counted_as, count(*) AS n,
       sum(CASE WHEN p.input_tokens IS NOT NULL OR p.output_tokens IS NOT NULL THEN 1 ELSE 0 END) AS with_usage
FROM spans AS p JOIN selected_runs AS s ON s.run_id = p.run_id
GROUP BY p.run_id, p.kind, p.counted_as
ORDER BY p.run_id, p.kind, p.counted_as
"""
"""The number of spans by kind and by how they are counted."""


def _owned(relation: str, number: str, columns: str) -> str:
    """Return SQL for the rows of a relation, each with the name of the agent that it belongs to."""
    owner = "LEFT JOIN agents AS o ON o.run_id = r.run_id AND o.span_id = r.agent_span_id"
    return rows_sql(relation, (number, "span_id", *columns.split(), "agent"), number, owner, agent="o.name")


_ASKED = {
    "runs": _RUNS,
    "spans": _SPANS,
    "dialects": _DIALECTS,
    "messages": "SELECT DISTINCT m.run_id AS run_id FROM messages AS m JOIN selected_runs AS s ON s.run_id = m.run_id",
    "llm_calls": _owned(
        "llm_calls",
        "call_no",
        "request_model response_model provider input_tokens output_tokens cache_read_tokens cache_write_tokens "
        "reasoning_tokens cost_usd cost_source error start_ns end_ns outcome certain",
    ),
    "tool_calls": _owned(
        "tool_calls", "call_no", "name call_id arguments result outcome error start_ns end_ns certain"
    ),
    "tool_requests": _owned("tool_requests", "request_no", "name call_id arguments result asked_ns reason"),
    "agents": rows_sql(
        "agents",
        ("activation_no", "name", "span_id", "parent", "parent_no", "via", "certain"),
        "activation_no",
        "LEFT JOIN agents AS p ON p.run_id = r.run_id AND p.activation_no = r.parent_activation_no",
        parent="p.name",
        parent_no="r.parent_activation_no",
    ),
    "errors": rows_sql("errors", ("error_no", "span_id", "name", "message", "recovered", "certain"), "error_no"),
    "totals": rows_sql("run_totals", RELATIONS["run_totals"].column_names[1:], ""),
    "counted": _COUNTED,
    "doubts": rows_sql(
        "doubts",
        ("relation", "row_no", "column_name", "reason", "span_id"),
        "relation row_no column_name reason span_id",
    ),
    "gaps": rows_sql(
        "gaps",
        ("relation", "at_most", "name", "outcome", "agent", "turn", "reason", "span_id"),
        "relation reason name span_id",
    ),
}


def inspect_runs(store: QueryableStore, run_ids: Sequence[str], dialects: Mapping[str, Dialect]) -> dict[str, Any]:
    """Return the facts of `run_ids` in the contract's form; facts must be current. Unknown is None, never 0 or [].

    Args:
        dialects: by name; they know what makes more known.
    """
    store.select_runs(run_ids)
    found = {name: by_run(store, sql) for name, sql in _ASKED.items()}
    states = fact_states(store)
    runs = [_run(run_id, found, dialects) for run_id in run_ids]
    for run in runs:
        run["diagnostics"] = list(states[run["run_id"]].diagnostics) if run["run_id"] in states else []
    return {"schema": SCHEMA, "runs": runs}


def _run(
    run_id: str, found: dict[str, dict[str, list[dict[str, Any]]]], dialects: Mapping[str, Dialect]
) -> dict[str, Any]:
    facts = {name: rows.get(run_id, []) for name, rows in found.items()}
    run, traced = facts["runs"][0], bool(facts["totals"])
    bounds = facts["totals"][0] if traced else {}
    counts = facts["spans"][0] if facts["spans"] else {"spans": 0, "traces": 0, "whole_ns": None}
    totals = _totals(bounds, facts["doubts"], facts["gaps"], whole=run["complete"] is True or not traced)
    rows = {
        "llm_calls": [row for row in facts["llm_calls"] if row["outcome"] != "error"],
        "tool_calls": [_tool_call(row) for row in facts["tool_calls"]],
        "agents": [{key: value for key, value in row.items() if key != "parent_no"} for row in facts["agents"]],
        "errors": facts["errors"],
    }
    known = {name: totals[name] is not None and totals[name] == len(of) for name, of in rows.items()}
    known["agents"] &= all(row["name"] is not None for row in facts["agents"])
    started, ended = run["started_ns"], run["ended_ns"]
    lists = {name: of if known[name] else None for name, of in rows.items()}
    return {
        "run_id": run_id,
        "complete": run["complete"],
        "incomplete_because": [reason["message"] for reason in json.loads(run["incomplete_because"] or "[]")],
        "closed_by": run["closed_by"],
        "cassette": run["cassette"],
        "traces": counts["traces"],
        "spans": counts["spans"],
        "dialects": [row["dialect"] for row in facts["dialects"]],
        "started_at": None if started is None else _iso(started),
        "duration_ms": _ms(_between(started, ended)),
        "work_ms": _ms(_between(bounds.get("first_start_ns"), bounds.get("last_end_ns"))),
        "whole_trace_ms": _ms(counts["whole_ns"]),
        "final_output": run["final_output"],
        "llm_calls": lists["llm_calls"],
        "tool_calls": lists["tool_calls"],
        "tool_requests": [_tool_call(row) for row in facts["tool_requests"]],
        "agents": lists["agents"],
        "delegations": _delegations(facts["agents"]) if totals["agents"] == len(rows["agents"]) else None,
        "errors": lists["errors"],
        "seen": {name: None if known[name] or not traced else of for name, of in rows.items()},
        "totals": totals,
        "doubts": [_because(row) for row in facts["doubts"]],
        "gaps": [_because(row) for row in facts["gaps"]],
        "hints": _hints(facts, [dialects[row["dialect"]] for row in facts["dialects"] if row["dialect"] in dialects]),
        "reconciliation": _reconciliation(facts["counted"], facts["llm_calls"], facts["tool_calls"], totals),
    }


def _hints(facts: Mapping[str, list[dict[str, Any]]], dialects: Sequence[Dialect]) -> list[str]:
    """Return what would make tokens known that are not, and messages, a sentence each."""
    silent = any(row["relation"] == "llm_calls" and row["reason"] == "tokens-not-recorded" for row in facts["doubts"])
    unread = bool(facts["llm_calls"]) and not facts["messages"]
    said = (usage_hint(dialects) if silent else "", content_hint(dialects) if unread else "")
    return [hint for hint in said if hint]


def _between(start_ns: int | None, end_ns: int | None) -> int | None:
    return None if start_ns is None or end_ns is None else end_ns - start_ns


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 3)


def _because(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "because": REASONS[row["reason"]].sentence}


def _tool_call(row: dict[str, Any]) -> dict[str, Any]:
    """Return a call, or a request, with its arguments as a JSON value; text that is no JSON stays text."""
    arguments = row["arguments"]
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError, RecursionError):
            parsed = json.loads(arguments)
            if arguments.count("[") + arguments.count("{") > _DEEP:
                json.dumps(parsed)  # what is nested too deeply to be written stays text
            arguments = parsed
    outcome = {"outcome": row["outcome"] or "unknown"} if "outcome" in row else {}
    return {**row, **outcome, "arguments": arguments}


def _delegations(rows: list[dict[str, Any]]) -> list[list[str]] | None:
    """Return the pairs of agents; None where it is unknown who called one, or a name of a pair."""
    if any(row["parent_no"] is None and row["via"] != "root" for row in rows):
        return None
    nested = [row for row in rows if row["parent_no"] is not None]
    if any(row["name"] is None or row["parent"] is None for row in nested):
        return None
    return [list(pair) for pair in dict.fromkeys((row["parent"], row["name"]) for row in nested)]


def _totals(
    bounds: dict[str, Any], doubts: list[dict[str, Any]], gaps: list[dict[str, Any]], *, whole: bool
) -> dict[str, Any]:
    """Return each total with its bounds; None where it is not known."""
    value = exact if whole else partial(as_received, doubts=doubts, gaps=gaps)
    names = (*COUNTED, "cost_usd")
    return {
        **{name: value(bounds, name) for name in names},
        **{bound: bounds.get(bound) for name in names for bound in bounded(name)},
        "priced_calls": bounds.get("priced_calls"),
    }


def _iso(ns: int) -> str:
    moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns // 1_000_000 % 1000:03d}Z"


_REPEATED = ("agent span repeats its children", "agent spans repeat their children")
_STATED = ("states usage of calls that were not recorded", "state usage of calls that were not recorded")

_Rows = list[dict[str, Any]]


def _reconciliation(rows: _Rows, llm_calls: _Rows, tool_calls: _Rows, totals: dict[str, Any]) -> list[str]:
    """Return one line for model calls and one for tool calls.

    Args:
        rows: of `COUNTED_SPANS`.
        llm_calls: all of the run, answered or not.
        tool_calls: all of the run.
        totals: of the run; where one is unknown, the calls are those that were recorded.
    """
    lines = []
    usage = sum(row["with_usage"] for row in rows)
    calls = _n(rows, "llm", "call")
    if usage or calls:
        answered = sum(call["outcome"] == "ok" for call in llm_calls)
        unclear = sum(call["outcome"] is None for call in llm_calls)
        failed = "call that got no answer is not counted", "calls that got no answer are not counted"
        perhaps = "call that may have got none is not counted", "calls that may have got none are not counted"
        embeddings = _n(rows, "embedding", "accounting", "with_usage")
        why = [
            _count(calls - answered - unclear, *failed),
            _count(unclear, *perhaps),
            _count(calls - _n(rows, "llm", "call", "with_usage"), "call without usage", "calls without usage"),
            _count(_n(rows, "llm", "wrapper"), "wraps the call's span", "wrap the call's span"),
            _count(_n(rows, "llm", "duplicate"), "repeats the same call", "repeat the same call"),
            _count(embeddings, "embedding is no model call", "embeddings are no model calls"),
            _count(_n(rows, None, "accounting", "with_usage") - embeddings, *(_REPEATED if calls else _STATED)),
        ]
        lines.append(_line(usage, "span", " with usage", answered, _noun(totals, "llm_calls", "model call"), why))
    tools = _n(rows, "tool", None)
    counted = _n(rows, "tool", "call")
    unseen = max(len(tool_calls) - counted, 0)
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


def _n(rows: _Rows, kind: str | None, counted_as: str | None, what: str = "n") -> int:
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

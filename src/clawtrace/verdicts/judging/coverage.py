"""Why a fact is unknown, and what would make it known.

A missing fact comes as ``relation.column``; what the dialects of the run can record tells whether it was lost,
switched off or never recordable (spec: span-model.md §5, "records").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clawtrace.dialects import Dialect
from clawtrace.model.query import Query
from clawtrace.model.run import ClosedBy
from clawtrace.store.api import QueryableStore

__all__ = ["hint_for", "no_trace_hints"]

_RECORDABLE = {
    "tool_calls.arguments": "arguments",
    "tool_calls.result": "results",
    "tool_calls": "tool_calls",
    "commands": "results",
    "commands.text": "arguments",
    "agents": "agents",
    "errors": "errors",
    "llm_calls": "llm_calls",
    "llm_calls.failed_attempts": "failed_attempts",
    "llm_calls.cache_read_tokens": "cached_tokens",
    "llm_calls.cache_write_tokens": "cached_tokens",
    "llm_calls.reasoning_tokens": "reasoning_tokens",
}
"""Missing fact → what a dialect calls it; tokens and costs: see `_recordable`."""

_WORDS = {
    "arguments": "tool arguments",
    "results": "tool results",
    "tool_calls": "tool calls",
    "cost": "cost",
    "agents": "agents",
    "errors": "errors",
    "tokens": "token usage",
    "llm_calls": "model calls",
    "failed_attempts": "failed attempts that an SDK retries",
    "cached_tokens": "cached tokens",
    "reasoning_tokens": "reasoning tokens",
}

# What came for each of the runs, and whether the run is one that nobody announced: a trace that names no run.
_RECEIPTS = """
SELECT n.run_id AS run_id, sum(c.accepted) AS accepted, sum(c.rejected) AS rejected, sum(c.refused) AS refused,
       count(CASE WHEN c.signal = 'traces' THEN 1 END) AS trace_receipts,
       sum(CASE WHEN c.signal = 'traces' THEN c.accepted ELSE 0 END) AS spans,
       max(CASE WHEN r.run_id IS NULL THEN 1 ELSE 0 END) AS stranger
FROM run_numbers AS n
JOIN selected_runs AS s ON s.run_id = n.run_id
JOIN receipts AS c ON c.run_no = n.run_no
LEFT JOIN run_records AS r ON r.run_id = n.run_id
GROUP BY n.run_id
"""

_WHY = """
SELECT DISTINCT n.run_id AS run_id, c.reason AS reason
FROM run_numbers AS n
JOIN selected_runs AS s ON s.run_id = n.run_id
JOIN receipts AS c ON c.run_no = n.run_no
WHERE c.reason <> '' ORDER BY run_id, reason
"""

_STRANGERS = """
SELECT count(DISTINCT c.run_no), sum(c.accepted)
FROM receipts AS c JOIN run_numbers AS n ON n.run_no = c.run_no
WHERE c.signal = 'traces' AND NOT EXISTS (SELECT 1 FROM run_records AS r WHERE r.run_id = n.run_id)
"""

_STRAYS = """
SELECT s.run_id AS run_id, c.reason AS reason, sum(c.refused + c.rejected) AS n
FROM selected_runs AS s
LEFT JOIN runs AS r ON r.run_id = s.run_id
JOIN receipts AS c ON c.run_no = 0 AND c.reason <> '' AND c.arrival_ns >= coalesce(r.started_ns, 0)
GROUP BY s.run_id, c.reason ORDER BY run_id, n DESC, reason
"""

_ENDS = """
SELECT s.run_id AS run_id, r.run_status AS run_status, r.agent_exit_code AS exit_code, r.closed_by AS closed_by
FROM selected_runs AS s JOIN runs AS r ON r.run_id = s.run_id
WHERE r.run_status IS NOT NULL
"""

_LATER = (
    "If the agent already ran, its exporter sends later than was waited: `settle_ms` of the runner is how long nothing may "
    "arrive, and `agent: started` says that there is nothing to wait for. "
)

_REASONS = 3
"""Reasons that a hint tells."""


def _recordable(missing: str) -> str | None:
    """Return what a dialect calls a missing fact; None for one that no instrumentation records."""
    relation, _, column = missing.partition(".")
    if relation in ("llm_calls", "run_totals") and column.endswith("_tokens"):
        return "tokens"
    if column.startswith("cost"):
        return "cost"
    return _RECORDABLE.get(missing) or _RECORDABLE.get(relation)


def hint_for(missing: str, dialects: Iterable[Dialect]) -> str:
    """Return a sentence on what would record `missing`, from what the run's dialects say they can record."""
    if missing in ("commands.exit_code", "commands.ok"):
        return "An exit code is read from the JSON result of the tool (`exit_code`), or from the span of the process."
    if missing == "commands.last_no":
        return (
            "The text could not be split into its simple commands; a pattern without `^`, `$` and look-around is "
            "looked for in all of it."
        )
    fact = _recordable(missing)
    if fact is None:
        return ""
    if fact == "cost":
        return "Give the models a price under `model_pricing`."
    settings, never = [], []
    for dialect in dialects:
        recorded = dialect.records(fact)
        if isinstance(recorded, str):
            settings.append(f"{dialect.file.title}: {recorded}")
        elif not recorded and dialect.name != "opentelemetry":
            never.append(dialect.file.title)
    if settings:
        return f"{_WORDS[fact].capitalize()} would be recorded with another setting ({'; '.join(settings)})."
    if never:
        return f"{', '.join(never)} cannot record {_WORDS[fact]}."
    return ""


def no_trace_hints(store: QueryableStore, run_ids: Sequence[str]) -> dict[str, str]:
    """Return why there may be no trace of each run, from the receiver's counters; ``selected_runs`` is changed."""
    if not run_ids:
        return {}
    store.select_runs(run_ids)
    receipts = {row["run_id"]: row for row in store.ask(Query(_RECEIPTS)).dicts()}
    reasons, strays, ends = _by_run(store, _WHY), _by_run(store, _STRAYS), _by_run(store, _ENDS)
    strangers = store.ask(Query(_STRANGERS)).rows[0]
    return {
        run_id: _no_trace_hint(
            receipts.get(run_id, {}), reasons.get(run_id, []), strays.get(run_id, []), strangers, ends.get(run_id, [])
        )
        for run_id in run_ids
    }


def _by_run(store: QueryableStore, sql: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return the first rows of each run, without the run's id."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for run_id, *rest in store.ask(Query(sql)).rows:
        rows = found.setdefault(run_id, [])
        if len(rows) < _REASONS:
            rows.append(tuple(rest))
    return found


def _no_trace_hint(
    came: Mapping[str, Any],
    reasons: Sequence[tuple[Any, ...]],
    strays: Sequence[tuple[Any, ...]],
    strangers: tuple[Any, ...],
    ends: Sequence[tuple[Any, ...]],
) -> str:
    """Say what came for the run, and what came for none; where nothing came, how its agent ended if not well."""
    rejected, refused = came.get("rejected") or 0, came.get("refused") or 0
    if rejected or refused:
        listed = "; ".join(reason for (reason,) in reasons)
        counts = ((rejected, "rejected"), (refused, "refused"))
        told = " and ".join(f"{count} item{'s' if count != 1 else ''} {word}" for count, word in counts if count)
        return f"Nothing of this run was taken, {told}: {listed}."
    if came.get("accepted"):
        return (
            f"Of this run came {came['accepted']} items, none of them a span: its exporter sends logs or metrics only."
        )
    runs, spans = strangers[0], strangers[1] or 0
    if came.get("stranger") and came["trace_receipts"]:
        runs, spans = runs - 1, spans - came["spans"]
    if spans:
        told = f"{spans} span{'s' if spans != 1 else ''} in {runs} trace{'s' if runs != 1 else ''}"
        return (
            f"{told} arrived that name no run: pass CLAWTRACE_RUN_ID on as the resource "
            "attribute clawtrace.run_id (OTEL_RESOURCE_ATTRIBUTES), or as the header x-clawtrace-run-id. An agent that "
            "already runs has to continue the `traceparent` of each request (TRACEPARENT), or to name the session "
            "(CLAWTRACE_SESSION_ID) as `session.id` or `gen_ai.conversation.id`."
        )
    if strays:
        told = "; ".join(f"{reason} ({count} times)" if count > 1 else reason for reason, count in strays)
        return f"Nothing of this run arrived, but requests that named no run were turned away while it ran: {told}."
    ended = _end(*ends[0]) if ends else ""
    return (
        f"Nothing arrived at all. {ended}Usual causes{' otherwise' if ended else ''}: no exporter is configured or it "
        "points elsewhere (`clawtrace env` prints what is set, and what `telemetry_env` can switch on), the SDK is "
        "disabled (OTEL_SDK_DISABLED), or the agent ended without flushing its exporter."
    )


def _end(status: str, exit_code: int | None, closed_by: str | None) -> str:
    """Say how an agent ended that did not end well, or what was waited for in vain."""
    if status == "success":
        return _LATER if closed_by == ClosedBy.SETTLED else ""
    if status == "timed_out":
        return "The agent was ended by its time limit. "
    code = "" if exit_code is None else f" (exit code {exit_code})"
    return f"The agent ended as `{status}`{code}: begin with what it wrote on standard error. "

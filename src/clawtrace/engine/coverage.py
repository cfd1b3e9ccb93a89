"""Why a fact is unknown, and what would make it known.

A missing fact comes as ``relation.column``; what the dialects of the run can record tells whether it was lost,
switched off or never recordable (spec: span-model.md §5, "records").
"""

from __future__ import annotations

from collections.abc import Iterable

from clawtrace.dialects import Dialect
from clawtrace.model.query import Query
from clawtrace.store.api import QueryableStore

__all__ = ["hint_for", "no_trace_hint"]

_RECORDABLE = {
    "tool_calls.arguments": "arguments",
    "tool_calls.result": "results",
    "tool_calls": "tool_calls",
    "agents": "agents",
    "errors": "errors",
}
"""Missing fact → what a dialect calls it; columns of llm_calls: see `_recordable`."""

_WORDS = {
    "arguments": "tool arguments",
    "results": "tool results",
    "tool_calls": "tool calls",
    "cost": "cost",
    "agents": "agents",
    "errors": "errors",
    "tokens": "token usage",
    "llm_calls": "model calls",
}

_RECEIPTS = """
SELECT sum(c.accepted), sum(c.rejected), sum(c.refused)
FROM receipts AS c JOIN run_numbers AS n ON n.run_no = c.run_no
WHERE n.run_id = :run_id
"""

_ELSEWHERE = """
SELECT count(DISTINCT c.run_no), sum(c.accepted)
FROM receipts AS c JOIN run_numbers AS n ON n.run_no = c.run_no
WHERE n.run_id <> :run_id AND c.signal = 'traces'
  AND NOT EXISTS (SELECT 1 FROM run_records AS r WHERE r.run_id = n.run_id)
"""


def _recordable(missing: str) -> str:
    relation, _, column = missing.partition(".")
    if relation == "llm_calls" and column.endswith("_tokens"):
        return "tokens"
    if column.startswith("cost"):
        return "cost"
    return _RECORDABLE.get(missing) or _RECORDABLE.get(relation) or "llm_calls"


def hint_for(missing: str, dialects: Iterable[Dialect]) -> str:
    """Return a sentence on what would record `missing`, from what the run's dialects say they can record."""
    fact = _recordable(missing)
    if fact == "cost":
        return "Give the models a price under `model_pricing`."
    settings, never = [], []
    for dialect in dialects:
        recorded = dialect.records(fact)
        if isinstance(recorded, str):
            settings.append(f"{dialect.file.title}: set {recorded}")
        elif not recorded and dialect.name != "opentelemetry":
            never.append(dialect.file.title)
    if settings:
        return f"{_WORDS[fact].capitalize()} would be recorded with another setting ({'; '.join(settings)})."
    if never:
        return f"{', '.join(never)} cannot record {_WORDS[fact]}."
    return ""


def no_trace_hint(store: QueryableStore, run_id: str) -> str:
    """Return why there may be no trace, from the receiver's counters: what came for the run, and what came for none."""
    accepted, rejected, refused = store.ask(Query(_RECEIPTS, {"run_id": run_id})).rows[0]
    runs, strangers = store.ask(Query(_ELSEWHERE, {"run_id": run_id})).rows[0]
    if rejected or refused:
        return f"The receiver rejected {rejected or 0} and refused {refused or 0} items of this run."
    if accepted:
        return f"Of this run came {accepted} items, none of them a span: its exporter sends logs or metrics only."
    if strangers:
        return (
            f"{strangers} spans in {runs} traces arrived that name no run: pass CLAWTRACE_RUN_ID on as the resource "
            "attribute clawtrace.run_id (OTEL_RESOURCE_ATTRIBUTES), or as the header x-clawtrace-run-id."
        )
    return (
        "Nothing arrived at all. Usual causes: no exporter is configured or it points elsewhere (print what we set "
        "with `clawtrace env`), the SDK is disabled (OTEL_SDK_DISABLED), or the agent ended without flushing its exporter."
    )

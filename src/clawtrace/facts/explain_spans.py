"""What filled each column of the spans of a run: dialect, rule and attribute (`clawtrace inspect --explain`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clawtrace.dialects.explain import Explainer
from clawtrace.dialects.expressions import Seen
from clawtrace.dialects.load import Dialect
from clawtrace.dialects.unread import unknown_attributes
from clawtrace.store.api import FactStore

__all__ = ["explain_spans"]

_STORED = (
    "kind", "operation", "provider", "request_model", "response_model", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "reasoning_tokens", "cost_usd", "tool_name", "tool_call_id", "agent_name", "agent_id", "session_id",
)  # fmt: skip
"""Columns that the relation `spans` holds: what counts, in addition to what the rules say."""

_SPANS = f"""
CREATE OR REPLACE TEMP TABLE explained_spans AS
SELECT s.dialect AS dialect, s.tree_enter AS tree_enter, s.trace_id AS trace_id, s.span_id AS span_id, s.name AS name,
       s.source AS source, s.counted_as AS counted_as, s.counted_in AS counted_in, s.counted_by AS counted_by,
       s.rule AS rule, s.scope AS scope, s.scope_version AS scope_version,
       {", ".join(f"s.{name} AS counted_{name}" for name in _STORED)}, t.*
FROM spans AS s
JOIN run_numbers AS n ON n.run_id = s.run_id
LEFT JOIN otel_traces AS t ON t.run_no = n.run_no AND t."TraceId" = s.trace_id AND t."SpanId" = s.span_id
WHERE s.run_id = $run_id
QUALIFY row_number() OVER (
    PARTITION BY s.trace_id, s.span_id ORDER BY CASE WHEN t.end_ns > 0 THEN 0 ELSE 1 END, t.arrival_ns) = 1
"""

_SEEN = """
SELECT DISTINCT dialect, 'span', unnest(map_keys("SpanAttributes")) FROM explained_spans
UNION ALL SELECT DISTINCT dialect, 'event', unnest("Events.Name") FROM explained_spans
UNION ALL SELECT DISTINCT dialect, 'resource', unnest(map_keys("ResourceAttributes")) FROM explained_spans
UNION ALL SELECT DISTINCT dialect, 'any', '' FROM explained_spans
"""

_SAID = (
    "trace_id", "span_id", "name", "dialect", "source", "counted_as", "counted_in", "counted_by", "rule", "scope", "scope_version"
)  # fmt: skip

_ORDER = f"""
SELECT {", ".join(_SAID)}, map_keys("SpanAttributes"), {", ".join(f"counted_{name}" for name in _STORED)}
FROM explained_spans ORDER BY tree_enter
"""

_ELSEWHERE = "a log record of this span, or the spans around it"


def explain_spans(store: FactStore, dialects: Mapping[str, Dialect], run_id: str) -> list[dict[str, Any]]:
    """Return for each span of `run_id`, in the order of its tree, what filled its columns; facts must be current.

    `value` is what the rule yields; where what counts differs (cached tokens added), `counted` is added. A column that
    no rule filled from the span itself says so. `unknown_attributes` are those of which neither rules nor recordings know.
    """
    store.script(_SPANS, {"run_id": run_id})
    seen: dict[str, dict[str, set[str]]] = {}
    for dialect, place, key in store.script(_SEEN):
        seen.setdefault(dialect, {"span": set(), "event": set(), "resource": set(), "any": set()})[place].add(key)
    filled: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for dialect, found in seen.items():
        what = Seen(frozenset(found["span"]), frozenset(found["event"]), frozenset(found["resource"]))
        explainer = Explainer(dialects[dialect], dialects, what)
        for row in store.script(explainer.sql("explained_spans")):
            filled[row[0], row[1]] = [entry._asdict() for entry in explainer.filled(row)]
    spans = []
    for row in store.script(_ORDER):
        said, keys, stored = dict(zip(_SAID, row, strict=False)), row[len(_SAID)], row[len(_SAID) + 1 :]
        columns = filled.get((said["trace_id"], said["span_id"]), [])
        entries = {entry["column"]: entry for entry in columns}
        elsewhere = "a log record" if said.pop("source") == "log" else _ELSEWHERE
        for column, value in zip(_STORED, stored, strict=True):
            if column not in entries and value is not None:
                columns.append({"column": column, "value": value, "rule": elsewhere, "dialect": said["dialect"]})
            elif column in entries and entries[column]["value"] != value:
                entries[column]["counted"] = value
        unknown = unknown_attributes(dialects[said["dialect"]], keys or ())
        spans.append({**said, "unknown_attributes": unknown, "columns": columns})
    store.script("DROP TABLE explained_spans")
    return spans

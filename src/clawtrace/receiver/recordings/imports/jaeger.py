"""Jaeger's JSON, as its user interface and its API of version 2 write it: a trace with its processes, or one span.

https://www.jaegertracing.io/docs/latest/apis/ and OpenTelemetry's "OpenTelemetry to Jaeger Transformation".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from clawtrace.receiver.recordings.imports.foreign_spans import (
    ForeignSpan,
    number_time,
    objects_of,
    of_span,
    scope_of,
    span_id_of,
    trace_id_of,
)

_MICROSECONDS = 1000
_FAILED = [{"key": "error", "type": "bool", "value": value} for value in (True, "true")]


def spans(row: dict[str, Any]) -> Iterator[ForeignSpan]:
    """Yield the spans of a trace, or the one that the object is."""
    processes = row.get("processes") or {}
    for span in objects_of(row["spans"]) if "spans" in row else [row]:
        process = span.get("process") or processes.get(span.get("processID")) or {}
        name = span.get("operationName") or ""
        with of_span(span.get("spanID"), name):
            yield _span(span, name, process)


def _span(span: dict[str, Any], name: str, process: dict[str, Any]) -> ForeignSpan:
    pairs = list(objects_of(span.get("tags")))
    # The mark of a failure has the name of an attribute that the span may have, too.
    tags, failed = _tags(pair for pair in pairs if pair not in _FAILED), any(pair in _FAILED for pair in pairs)
    trace = trace_id_of(span.get("traceID"))
    parents = [span["parentSpanID"]] if span.get("parentSpanID") else []
    links = []
    for reference in objects_of(span.get("references")):
        of = trace_id_of(reference.get("traceID"))
        if reference.get("refType") == "CHILD_OF" and of == trace and not parents:
            parents.append(span_id_of(reference.get("spanID")))
        else:
            links.append((of, reference.get("spanID")))
    status = str(tags.pop("otel.status_code", ""))
    if failed:
        status = "ERROR"
    start = number_time(span.get("startTime"), "startTime", _MICROSECONDS)
    return ForeignSpan(
        trace, span.get("spanID"), parents[0] if parents else "", name, start,
        start + number_time(span.get("duration"), "duration", _MICROSECONDS), tags, status, str(tags.pop("otel.status_description", "")),
        str(tags.pop("span.kind", "internal")), [_event(log) for log in objects_of(span.get("logs"))], links,
        scope_of(tags), {"service.name": process.get("serviceName"), **_tags(objects_of(process.get("tags")))},
    )  # fmt: skip


def _tags(pairs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _typed(pair.get("type"), pair.get("value")) for pair in pairs}


def _typed(kind: str | None, value: Any) -> Any:
    """Return a value in the type that is written next to it; a store may have made text of it."""
    if not isinstance(value, str):
        return value
    match kind:
        case "bool":
            return value == "true"
        case "int64":
            return int(value)
        case "float64":
            return float(value)
    return value


def _event(log: dict[str, Any]) -> tuple[int, str, dict[str, Any]]:
    fields = _tags(objects_of(log.get("fields")))
    name = str(fields.pop("event", ""))
    return number_time(log.get("timestamp"), "timestamp", _MICROSECONDS), name, fields

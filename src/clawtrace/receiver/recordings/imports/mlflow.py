"""MLflow's traces: `mlflow.get_trace(…).to_json()`, the artifact `traces.json`, or single spans, of schema 2 and 3.

MLflow keeps every attribute as JSON. MLflow's are exported over OTLP like that; those that came over OTLP are values again here.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any

from clawtrace.receiver.recordings.imports.foreign_spans import ForeignSpan, a_mapping, number_time, objects_of, of_span

_OWN = "mlflow."
_SESSION = "mlflow.trace.session"
"""Of a trace: which conversation it belongs to."""


def spans(row: dict[str, Any]) -> Iterator[ForeignSpan]:
    """Yield the spans of a trace, or the one that the object is."""
    session = a_mapping(a_mapping(row.get("info")).get("trace_metadata")).get(_SESSION)
    for span in objects_of(row["data"]["spans"]) if "data" in row else [row]:
        with of_span(span.get("span_id"), span.get("name")):
            found = _span(span)
            found.attributes.setdefault(_SESSION, session)
            yield found


def _span(span: dict[str, Any]) -> ForeignSpan:
    context = span.get("context") or span
    parent = span.get("parent_span_id") or span.get("parent_id")
    status = a_mapping(span.get("status")) or {"code": span.get("status_code"), "message": span.get("status_message")}
    start = span.get("start_time_unix_nano", span.get("start_time"))
    end = span.get("end_time_unix_nano", span.get("end_time"))
    return ForeignSpan(
        _digits(context.get("trace_id"), 16), _digits(context.get("span_id"), 8), _digits(parent, 8),
        span.get("name") or "", number_time(start, "start_time_unix_nano", 1),
        number_time(end, "end_time_unix_nano", 1) if end else 0,
        {key: _value(key, value) for key, value in a_mapping(span.get("attributes")).items()},
        (status["code"] or "").removeprefix("STATUS_CODE_"), status.get("message") or "",
        events=[_event(event) for event in objects_of(span.get("events"))],
        links=[(_digits(link["trace_id"], 16), _digits(link["span_id"], 8)) for link in objects_of(span.get("links"))],
    )  # fmt: skip


def _digits(value: Any, size: int) -> Any:
    """Return an id without what MLflow puts before it (`tr-`), and in hexadecimal where it is base64."""
    if not isinstance(value, str):
        return value
    plain = value.rpartition("/")[2].removeprefix("tr-").removeprefix("0x")
    if len(plain) == 2 * size or not plain.endswith("="):
        return plain
    try:
        return base64.b64decode(plain, validate=True).hex()
    except binascii.Error:
        return plain


def _value(key: str, value: Any) -> Any:
    """Return what an attribute was before MLflow kept it as JSON; names without a dot are of MLflow's instrumentations."""
    if key.startswith(_OWN) or "." not in key or not isinstance(value, str):
        return value if isinstance(value, str) else json.dumps(value)
    try:
        said = json.loads(value)
    except ValueError:
        return value
    return value if isinstance(said, dict) else said


def _event(event: dict[str, Any]) -> tuple[int, str, dict[str, Any]]:
    time = event.get("time_unix_nano", event.get("timestamp"))
    return number_time(time, "time_unix_nano", 1), event.get("name") or "", a_mapping(event.get("attributes"))

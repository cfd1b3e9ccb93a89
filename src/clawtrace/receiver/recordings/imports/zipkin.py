"""Zipkin's JSON of version 2: an object per span, whose tags are texts.

https://zipkin.io/zipkin-api/ and OpenTelemetry's "OpenTelemetry to Zipkin Transformation".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from clawtrace.receiver.recordings.imports.foreign_spans import (
    ForeignSpan,
    number_time,
    objects_of,
    of_span,
    scope_of,
    span_id_of,
)

_MICROSECONDS = 1000
_RESOURCE = ("service.", "telemetry.sdk.")
"""A span's tags include those of its resource. These may be the resource's by convention, and are kept as both."""
_CUT = 128
"""Characters after which OpenTelemetry's exporter cuts a tag by default."""


def spans(row: dict[str, Any]) -> Iterator[ForeignSpan]:
    """Yield the span that the object is."""
    with of_span(row.get("id"), row.get("name")):
        yield _span(row)


def _span(row: dict[str, Any]) -> ForeignSpan:
    tags = dict(row.get("tags") or {})
    scope = scope_of(tags)
    status = tags.pop("otel.status_code", "ERROR" if tags.get("error", "false") != "false" else "")
    message = tags.pop("otel.status_description", "")
    if status == "ERROR":
        message = tags.pop("error", "") or message
    dropped = int(tags.pop("otel.dropped_attributes_count", 0)) + sum(len(value) == _CUT for value in tags.values())
    resource = {"service.name": (row.get("localEndpoint") or {}).get("serviceName")}
    resource |= {key: value for key, value in tags.items() if key.startswith(_RESOURCE)}
    start = number_time(row.get("timestamp"), "timestamp", _MICROSECONDS)
    duration = row.get("duration")
    end = 0 if duration is None else start + number_time(duration, "duration", _MICROSECONDS)
    own, parent = span_id_of(row.get("id")), row.get("parentId")
    if row.get("shared"):  # the server's side of a call has the id of the client's
        own, parent = span_id_of(f"shared {own}"), own
    return ForeignSpan(
        row.get("traceId"), own, parent, row.get("name") or "", start, end, tags, status, message,
        row.get("kind") or "INTERNAL", [_event(note) for note in objects_of(row.get("annotations"))], [],
        scope, resource, dropped,
    )  # fmt: skip


def _event(note: dict[str, Any]) -> tuple[int, str, dict[str, Any]]:
    """Return an event; OpenTelemetry's exporters write one with attributes as `{"name": {…}}`."""
    name, attributes = str(note.get("value", "")), {}
    try:
        (said,) = json.loads(name).items()
        if isinstance(said[1], dict):
            name, attributes = said
    except (AttributeError, TypeError, ValueError):
        pass
    return number_time(note.get("timestamp"), "timestamp", _MICROSECONDS), name, attributes

"""Phoenix's spans: JSON of its REST API and clients, or rows of a dataframe (`attributes.llm.model_name` …).

Dotted keys were made into objects and lists when Phoenix took the spans in; here they are dotted keys again, as OpenInference writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from clawtrace.receiver.recordings.imports.foreign_spans import (
    ForeignSpan,
    a_mapping,
    as_json,
    iso_time,
    objects_of,
    of_span,
)

_KIND = "openinference.span.kind"
_STANDARD = "gen_ai.operation.name"
_DERIVED = ("llm.", "openinference.", "tool.", "input.", "output.")
"""What Phoenix makes of OpenTelemetry's own attributes, next to them and with less in it."""
_JSON = (
    "metadata",
    "llm.invocation_parameters",
    "llm.prompt_template.variables",
    "tool.parameters",
    "json_schema",
    "function.arguments",
)
"""Attributes that are JSON as text; Phoenix reads some of them."""


def spans(row: dict[str, Any]) -> Iterator[ForeignSpan]:
    """Yield the span that the object is."""
    context = row.get("context") or {name: row.get(f"context.{name}") for name in ("trace_id", "span_id")}
    attributes = dict(_flat("", a_mapping(row.get("attributes"))))
    for key, value in row.items():
        if key.startswith("attributes."):
            attributes |= _flat(key.removeprefix("attributes."), _filled(value))
    kind = row.get("span_kind")
    if attributes.get(_STANDARD):
        attributes = {key: value for key, value in attributes.items() if not key.startswith(_DERIVED)}
    elif kind and kind != "UNKNOWN":
        attributes.setdefault(_KIND, kind)
    with of_span(context.get("span_id"), row.get("name")):
        yield ForeignSpan(
            context.get("trace_id"), context.get("span_id"), row.get("parent_id"), row.get("name") or "",
            iso_time(row.get("start_time"), "start_time", needed=True), iso_time(row.get("end_time"), "end_time"), attributes,
            row.get("status_code") or "", row.get("status_message") or "",
            events=[_event(event) for event in objects_of(_read(row.get("events")))],
        )  # fmt: skip


def _flat(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that a value was made of."""
    if value is None:
        return
    if key.endswith(_JSON) and not isinstance(value, str):
        yield key, as_json(value)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(f"{key}.{name}" if key else name, inner)
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        for place, inner in enumerate(value):
            yield from _flat(f"{key}.{place}", inner)
    else:
        yield key, value


def _filled(value: Any) -> Any:
    """Return a value without what is null: a column of objects has the keys of all rows."""
    if isinstance(value, dict):
        return {key: _filled(inner) for key, inner in value.items() if inner is not None}
    return [_filled(one) for one in value] if isinstance(value, list) else value


def _read(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _event(event: dict[str, Any]) -> tuple[int, str, dict[str, Any]]:
    attributes = dict(_flat("", event.get("attributes") or {}))
    return iso_time(event.get("timestamp"), "timestamp"), event.get("name") or "", attributes

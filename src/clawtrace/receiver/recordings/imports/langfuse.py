"""Langfuse's observations: a trace with those that belong to it (`GET /api/public/traces/ID`, or downloaded), or single ones.

Names are in camel case in its API, and in snake case in files of its blob storage export. What the observation of an OpenTelemetry span
does not know of it is kept in its metadata: the other attributes, resource and scope.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from clawtrace.receiver.recordings.imports.foreign_spans import (
    ForeignSpan,
    a_mapping,
    as_json,
    iso_time,
    objects_of,
    of_span,
)

_OBSERVATION = "langfuse.observation."
_ATTRIBUTES = (
    ("model", "model.name"),
    ("modelParameters", "model.parameters"),
    ("usageDetails", "usage_details"),
    ("costDetails", "cost_details"),
    ("input", "input"),
    ("output", "output"),
    ("level", "level"),
    ("statusMessage", "status_message"),
    ("completionStartTime", "completion_start_time"),
)
"""Fields of an observation, and the attributes that Langfuse's SDKs write; objects are JSON there."""
_MODEL = ("providedModelName", "provided_model_name")
"""What newer forms call the model."""
_CAPITAL = re.compile("[A-Z]")
_MILLISECOND = 1_000_000
_OPEN_TELEMETRY = ("attributes", "resourceAttributes", "scope")


def spans(row: dict[str, Any]) -> Iterator[ForeignSpan]:
    """Yield the observations of a trace, or the one that the object is."""
    trace = a_mapping(row.get("trace")) or row
    for one in objects_of(row["observations"]) if "observations" in row else [row]:
        with of_span(one.get("id"), one.get("name"), "observation"):
            yield _span(one, trace, None if one is row else trace.get("id"))


def _span(one: dict[str, Any], trace: dict[str, Any], trace_id: str | None) -> ForeignSpan:
    metadata = a_mapping(one.get("metadata"))
    attributes = dict(a_mapping(metadata.get("attributes")))
    attributes |= {
        f"{_OBSERVATION}metadata.{key}": _as_metadata(value)
        for key, value in metadata.items()
        if key not in _OPEN_TELEMETRY
    }
    for name, attribute in _ATTRIBUTES:
        value = _get(one, name)
        if value not in (None, "", {}):
            attributes[_OBSERVATION + attribute] = as_json(value)
    attributes[f"{_OBSERVATION}type"] = str(one.get("type")).lower()
    attributes["langfuse.session.id"] = _get(one, "sessionId") or _get(trace, "sessionId")
    attributes["langfuse.user.id"] = _get(one, "userId") or _get(trace, "userId")
    start, end = iso_time(_get(one, "startTime"), "startTime", needed=True), iso_time(_get(one, "endTime"), "endTime")
    if one.get("type") == "EVENT":  # a moment, which has no end
        end = end or start
    elif end and not end % _MILLISECOND:
        # it ended within this millisecond: whatever began in it may have run at the same time
        end += _MILLISECOND - 1
    failed, parent, scope = (
        one.get("level") == "ERROR",
        _get(one, "parentObservationId"),
        a_mapping(metadata.get("scope")),
    )
    return ForeignSpan(
        _get(one, "traceId") or trace_id, one.get("id"), parent,
        one.get("name") or "", start, end, attributes, "ERROR" if failed else "", (_get(one, "statusMessage") or "") if failed else "",
        scope=(scope.get("name") or "", scope.get("version") or ""), resource=a_mapping(metadata.get("resourceAttributes")),
    )  # fmt: skip


def _get(one: dict[str, Any], name: str) -> Any:
    names = (name, _CAPITAL.sub(lambda found: "_" + found[0].lower(), name), *(_MODEL if name == "model" else ()))
    return next((one[key] for key in names if one.get(key) is not None), None)


def _as_metadata(value: Any) -> str:
    """Return a value as the SDKs write it: JSON, texts too."""
    return value if isinstance(value, str) and value.startswith('"') else json.dumps(value, separators=(",", ":"))

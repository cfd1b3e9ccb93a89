"""Our recordings as stores of traces give them out, by their documented forms."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime
from typing import Any

from recordings_of import RecordedSpan, requests_of, spans_of, values

_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
_STATUS = {"1": "OK", "STATUS_CODE_OK": "OK", "2": "ERROR", "STATUS_CODE_ERROR": "ERROR"}


def status_of(one: RecordedSpan) -> tuple[str, str]:
    status = one.span.get("status", {})
    return _STATUS.get(str(status.get("code", 0)), ""), status.get("message", "")


def kind_of(one: RecordedSpan) -> str:
    kind = one.span.get("kind", 0)
    return kind.removeprefix("SPAN_KIND_").lower() if isinstance(kind, str) else _KINDS[kind]


def jaeger(name: str) -> str:
    """OpenTelemetry's transformation to Jaeger, in the form of `/api/traces/ID` and of the button of its user interface."""
    traces: dict[str, dict[str, Any]] = {}
    for one in spans_of(name):
        span = one.span
        trace = traces.setdefault(
            span["traceId"], {"traceID": span["traceId"], "spans": [], "processes": {}, "warnings": None}
        )
        resource = dict(one.resource)
        process = {"serviceName": resource.pop("service.name", "unknown_service"), "tags": _tags(resource)}
        key = next(
            (key for key, known in trace["processes"].items() if known == process), f"p{len(trace['processes']) + 1}"
        )
        trace["processes"][key] = process
        trace["spans"].append(_jaeger_span(one) | {"processID": key})
    return json.dumps({"data": list(traces.values()), "total": 0, "limit": 0, "offset": 0, "errors": None}, indent=2)


def _jaeger_span(one: RecordedSpan) -> dict[str, Any]:
    span, (status, message) = one.span, status_of(one)
    tags = one.attributes | {"span.kind": kind_of(one), "otel.scope.name": one.scope.get("name", "")}
    tags |= {"otel.scope.version": one.scope["version"]} if one.scope.get("version") else {}
    tags |= {"otel.status_code": status} if status else {}
    marks = _tags({"error": True, "otel.status_description": message}) if status == "ERROR" else []
    references = [
        {"refType": "FOLLOWS_FROM", "traceID": link["traceId"], "spanID": link["spanId"]}
        for link in span.get("links", ())
    ]
    if span.get("parentSpanId"):
        references.insert(0, {"refType": "CHILD_OF", "traceID": span["traceId"], "spanID": span["parentSpanId"]})
    start, end = int(span["startTimeUnixNano"]) // 1000, int(span["endTimeUnixNano"]) // 1000
    logs = [
        {
            "timestamp": int(event["timeUnixNano"]) // 1000,
            "fields": _tags({"event": event["name"]} | values(event.get("attributes", ()))),
        }
        for event in span.get("events", ())
    ]
    return {
        "traceID": span["traceId"], "spanID": span["spanId"], "operationName": span["name"], "references": references,
        "startTime": start, "duration": end - start, "tags": [*_tags(tags), *marks], "logs": logs, "warnings": None,
    }  # fmt: skip


def _tags(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    names = {bool: "bool", int: "int64", float: "float64"}
    return [
        {
            "key": key,
            "type": names.get(type(value), "string"),
            "value": json.dumps(value) if isinstance(value, list | dict) else value,
        }
        for key, value in attributes.items()
    ]


def zipkin(name: str) -> str:
    """OpenTelemetry's transformation to Zipkin, in the form of `/api/v2/traces`: lists of lists."""
    return json.dumps([[_zipkin_span(one) for one in spans_of(name)]])


def _zipkin_span(one: RecordedSpan) -> dict[str, Any]:
    span, (status, message) = one.span, status_of(one)
    tags = {key: _text(value) for key, value in {**one.attributes, **one.resource}.items()}
    tags |= {"otel.scope.name": one.scope.get("name", ""), "otel.scope.version": one.scope.get("version", "")}
    tags |= {"otel.status_code": status} if status else {}
    tags |= {"error": message} if status == "ERROR" else {}
    start, end = int(span["startTimeUnixNano"]) // 1000, int(span["endTimeUnixNano"]) // 1000
    notes = [
        {
            "timestamp": int(event["timeUnixNano"]) // 1000,
            "value": json.dumps({event["name"]: values(event.get("attributes", ()))}),
        }
        for event in span.get("events", ())
    ]
    found = {
        "traceId": span["traceId"], "id": span["spanId"], "parentId": span.get("parentSpanId") or None, "name": span["name"],
        "kind": kind_of(one).upper() if kind_of(one) not in ("internal", "unspecified") else None, "timestamp": start, "duration": end - start,
        "localEndpoint": {"serviceName": one.resource.get("service.name", "unknown_service")}, "annotations": notes, "tags": tags,
    }  # fmt: skip
    return {key: value for key, value in found.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


def tempo(name: str) -> str:
    """The answer of `/api/traces/ID`, which is what Grafana downloads: protobuf's own JSON, with ids in base64."""
    batches = [group for request in requests_of(name) for group in request["resourceSpans"]]
    for group in batches:
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if span.get(key):
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
                for link in span.get("links", ()):
                    link.update(
                        {key: base64.b64encode(bytes.fromhex(link[key])).decode() for key in ("traceId", "spanId")}
                    )
    return json.dumps({"batches": batches}, indent=1)


_FIELDS = {
    "model.name": "model", "model.parameters": "modelParameters", "usage_details": "usageDetails", "cost_details": "costDetails",
    "input": "input", "output": "output", "level": "level", "status_message": "statusMessage",
}  # fmt: skip


def langfuse(name: str, *, snake: bool = False) -> str:
    """Observations as Langfuse's server makes them of spans: of `GET /api/public/traces/ID`, or lines of its blob storage export."""
    observations = [_observation(one) for one in spans_of(name)]
    if snake:
        return "".join(
            json.dumps(
                {re.sub("[A-Z]", lambda found: "_" + found[0].lower(), key): value for key, value in one.items()}
            )
            + "\n"
            for one in observations
        )
    return json.dumps({"id": observations[0]["traceId"], "name": "t", "observations": observations}, indent=2)


def _observation(one: RecordedSpan) -> dict[str, Any]:
    span, prefix = one.span, "langfuse.observation."
    found: dict[str, Any] = {
        "id": span["spanId"], "traceId": span["traceId"], "parentObservationId": span.get("parentSpanId") or None, "name": span["name"],
        "startTime": _milliseconds(span["startTimeUnixNano"]), "endTime": _milliseconds(span["endTimeUnixNano"]), "level": "DEFAULT",
    }  # fmt: skip
    rest = {key: _text(value) for key, value in one.attributes.items() if not key.startswith(prefix)}
    metadata: dict[str, Any] = {
        "attributes": rest,
        "resourceAttributes": one.resource,
        "scope": {key: one.scope.get(key) for key in ("name", "version")},
    }
    for key, value in one.attributes.items():
        field = key.removeprefix(prefix)
        if key.startswith(prefix + "metadata."):
            metadata[field.removeprefix("metadata.")] = _parsed(value)
        elif field in _FIELDS:
            found[_FIELDS[field]] = _parsed(value)
    found["type"] = one.attributes.get(prefix + "type", "span").upper()
    return found | {"metadata": metadata}


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def _milliseconds(nanoseconds: str) -> str:
    return (
        datetime.fromtimestamp(int(nanoseconds) // 1_000_000 / 1000, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


STORES = {"jaeger": jaeger, "zipkin": zipkin, "tempo": tempo}

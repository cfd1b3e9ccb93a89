"""A recording, lines of OTLP JSON, as spans of OpenTelemetry's SDK."""

import gzip
import json
from pathlib import Path

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags


def read(path):
    content = Path(path).read_bytes()
    for line in (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).splitlines():
        for group in json.loads(line)["resourceSpans"]:
            resource = Resource(_attributes(group["resource"]))
            for scope in group["scopeSpans"]:
                about = scope.get("scope", {})
                for span in scope["spans"]:
                    yield _span(span, resource, InstrumentationScope(about.get("name", ""), about.get("version", "")))


def _span(span, resource, scope):
    status, parent = span.get("status", {}), span.get("parentSpanId")
    code = StatusCode(status.get("code", 0))
    return ReadableSpan(
        span["name"], _context(span["traceId"], span["spanId"]), _context(span["traceId"], parent) if parent else None, resource, _attributes(span),
        [Event(event["name"], _attributes(event), int(event["timeUnixNano"])) for event in span.get("events", ())],
        [Link(_context(link["traceId"], link["spanId"]), _attributes(link)) for link in span.get("links", ())],
        SpanKind(max(span.get("kind", 1) - 1, 0)), status=Status(code, status.get("message") if code is StatusCode.ERROR else None),
        start_time=int(span["startTimeUnixNano"]), end_time=int(span["endTimeUnixNano"]), instrumentation_scope=scope,
    )  # fmt: skip


def _context(trace, span):
    return SpanContext(int(trace, 16), int(span, 16), False, TraceFlags(1))


def _attributes(node):
    return {pair["key"]: _value(pair["value"]) for pair in node.get("attributes", ())}


def _value(value):
    kind, inner = next(iter(value.items()), ("stringValue", ""))
    if kind == "arrayValue":
        return tuple(_value(one) for one in inner.get("values", ()))
    return int(inner) if kind == "intValue" else inner

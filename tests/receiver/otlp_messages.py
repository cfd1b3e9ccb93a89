"""Builders of OTLP requests, and senders that show the raw answer."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

RUN = "clawtrace.run_id"
METHODS = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}


def any_value(value: Any) -> common_pb2.AnyValue:
    if isinstance(value, common_pb2.AnyValue):
        return value
    if isinstance(value, bool):
        return common_pb2.AnyValue(bool_value=value)
    if isinstance(value, int):
        return common_pb2.AnyValue(int_value=value)
    if isinstance(value, float):
        return common_pb2.AnyValue(double_value=value)
    if isinstance(value, bytes):
        return common_pb2.AnyValue(bytes_value=value)
    if isinstance(value, list):
        return common_pb2.AnyValue(array_value=common_pb2.ArrayValue(values=[any_value(one) for one in value]))
    if isinstance(value, dict):
        return common_pb2.AnyValue(kvlist_value=common_pb2.KeyValueList(values=attributes(value)))
    return common_pb2.AnyValue() if value is None else common_pb2.AnyValue(string_value=value)


def attributes(values: dict[str, Any]) -> list[common_pb2.KeyValue]:
    return [common_pb2.KeyValue(key=key, value=any_value(value)) for key, value in values.items()]


def number(text: str, size: int) -> bytes:
    """A readable id: ``number("a1", 16)``."""
    return bytes.fromhex(text.rjust(2 * size, "0"))


def span(name: str, trace: str = "a1", span_id: str = "", **fields: Any) -> trace_pb2.Span:
    """A span; the id is made from the name unless given, ``attributes`` is a dict, ``links`` are trace numbers."""
    values = fields.pop("attributes", {})
    links = [
        trace_pb2.Span.Link(trace_id=number(target, 16), span_id=number("1", 8)) for target in fields.pop("links", ())
    ]
    own = span_id or name.encode().hex()[:16] or "1"
    defaults = {"start_time_unix_nano": 1_000, "end_time_unix_nano": 2_000} | fields
    return trace_pb2.Span(
        trace_id=number(trace, 16),
        span_id=number(own, 8),
        name=name,
        attributes=attributes(values),
        links=links,
        **defaults,
    )


def traces(*spans: trace_pb2.Span, resource: dict[str, Any] | None = None, scope: str = "test") -> trace_pb2.TracesData:
    data = trace_pb2.TracesData()
    group = data.resource_spans.add()
    group.resource.attributes.extend(attributes(resource or {}))
    below = group.scope_spans.add()
    below.scope.name = scope
    below.spans.extend(spans)
    return data


def record(event: str, time: int = 1_000, trace: str = "", **fields: Any) -> logs_pb2.LogRecord:
    values = fields.pop("attributes", {})
    body = fields.pop("body", None)
    made = logs_pb2.LogRecord(event_name=event, time_unix_nano=time, attributes=attributes(values), **fields)
    if trace:
        made.trace_id = number(trace, 16)
    if body is not None:
        made.body.CopyFrom(any_value(body))
    return made


def logs(*records: logs_pb2.LogRecord, resource: dict[str, Any] | None = None) -> logs_pb2.LogsData:
    data = logs_pb2.LogsData()
    group = data.resource_logs.add()
    group.resource.attributes.extend(attributes(resource or {}))
    group.scope_logs.add().log_records.extend(records)
    return data


def metrics(points: int = 2, resource: dict[str, Any] | None = None) -> metrics_pb2.MetricsData:
    data = metrics_pb2.MetricsData()
    group = data.resource_metrics.add()
    group.resource.attributes.extend(attributes(resource or {}))
    metric = group.scope_metrics.add().metrics.add(name="tokens")
    for value in range(points):
        metric.sum.data_points.add(as_int=value, time_unix_nano=1_000)
    return data


def as_json(message: Message) -> dict[str, Any]:
    """A request as OTLP JSON: protobuf's JSON with hexadecimal ids."""
    import base64

    def fix(node: Any) -> Any:
        if isinstance(node, list):
            return [fix(one) for one in node]
        if not isinstance(node, dict):
            return node
        ids = ("traceId", "spanId", "parentSpanId")
        return {key: base64.b64decode(value).hex() if key in ids else fix(value) for key, value in node.items()}

    fixed: dict[str, Any] = fix(MessageToDict(message, use_integers_for_enums=True))
    return fixed


def post(
    base: str, path: str, body: bytes, content_type: str | None = "application/x-protobuf", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """POST over HTTP; underscores in header names become dashes."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if content_type:
        fields["content-type"] = content_type
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=30)
    try:
        connection.request(headers.get("_method", "POST"), path, body, fields)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def post_json(base: str, path: str, document: Any, **headers: str) -> tuple[int, dict[str, str], Any]:
    status, fields, body = post(base, path, json.dumps(document).encode(), "application/json", **headers)
    return status, fields, json.loads(body)


def export(
    base: str, signal: str, body: bytes, *, metadata: dict[str, str] | None = None, gzip: bool = False
) -> tuple[grpc.StatusCode, str, bytes, dict[str, Any]]:
    """Call Export over gRPC and return code, details, answer and trailers."""
    compression = grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression
    options = [("grpc.max_send_message_length", -1), ("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(urlsplit(base).netloc, options=options, compression=compression) as channel:
        call = channel.unary_unary(METHODS[signal])
        try:
            answer, done = call.with_call(body, metadata=tuple((metadata or {}).items()), timeout=30)
        except grpc.RpcError as error:
            return error.code(), error.details(), b"", dict(error.trailing_metadata() or ())
        return grpc.StatusCode.OK, "", answer, dict(done.trailing_metadata() or ())

"""OTLP with the standard library alone, for agents that must start fast: protobuf and JSON by hand, HTTP and gRPC.

A span is a dict: trace, id (hex), parent, name, attributes (texts), links (trace ids), flags, start, end (nanoseconds), error.
"""

from __future__ import annotations

import http.client
import json
import os
from urllib.parse import unquote, urlsplit


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _fixed(field: int, value: int) -> bytes:
    return _varint(field << 3 | 1) + value.to_bytes(8, "little")


def _pairs(field: int, attributes: dict[str, str]) -> bytes:
    return b"".join(
        _bytes(field, _bytes(1, key.encode()) + _bytes(2, _bytes(1, value.encode())))
        for key, value in attributes.items()
    )


def protobuf(spans: list[dict], resource: dict[str, str], scope: str) -> bytes:
    """One ``ExportTraceServiceRequest``."""
    made = b""
    for span in spans:
        fields = _bytes(1, bytes.fromhex(span["trace"])) + _bytes(2, bytes.fromhex(span["id"]))
        if span.get("parent"):
            fields += _bytes(4, bytes.fromhex(span["parent"]))
        fields += _bytes(5, span["name"].encode()) + _fixed(7, span.get("start", 1)) + _fixed(8, span.get("end", 2))
        fields += _pairs(9, span.get("attributes", {}))
        for trace in span.get("links", ()):
            fields += _bytes(13, _bytes(1, bytes.fromhex(trace)) + _bytes(2, b"\1" * 8))
        if span.get("flags"):
            fields += _varint(16 << 3 | 5) + span["flags"].to_bytes(4, "little")
        if span.get("error"):
            fields += _bytes(15, _bytes(2, span["error"].encode()) + b"\x18\x02")
        made += _bytes(2, fields)
    return _bytes(1, _bytes(1, _pairs(1, resource)) + _bytes(2, _bytes(1, _bytes(1, scope.encode())) + made))


def _listed(attributes: dict[str, str]) -> list[dict]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]


def as_json(spans: list[dict], resource: dict[str, str], scope: str) -> bytes:
    """The same request as OTLP JSON."""
    made = [
        {
            "traceId": span["trace"],
            "spanId": span["id"],
            "parentSpanId": span.get("parent", ""),
            "name": span["name"],
            "kind": 1,
            "startTimeUnixNano": str(span.get("start", 1)),
            "endTimeUnixNano": str(span.get("end", 2)),
            "attributes": _listed(span.get("attributes", {})),
            "status": {"code": 2, "message": span["error"]} if span.get("error") else {},
            "flags": span.get("flags", 0),
            "links": [{"traceId": trace, "spanId": "01" * 8} for trace in span.get("links", ())],
        }
        for span in spans
    ]
    group = {"resource": {"attributes": _listed(resource)}, "scopeSpans": [{"scope": {"name": scope}, "spans": made}]}
    return json.dumps({"resourceSpans": [group]}).encode()


def pairs_of(variable: str) -> dict[str, str]:
    """The pairs of ``OTEL_RESOURCE_ATTRIBUTES`` or ``OTEL_EXPORTER_OTLP_HEADERS``."""
    pairs = (pair.split("=", 1) for pair in os.environ.get(variable, "").split(",") if "=" in pair)
    return {key: unquote(value) for key, value in pairs}


class Exporter:
    """Exports to where the environment points, over one connection, with `headers`; `path` keeps the run in the path."""

    def __init__(self, headers: dict[str, str] | None = None, path: bool = False) -> None:
        self.protocol = os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"]
        self.headers = headers or {}
        endpoint = urlsplit(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"])
        self.path = f"{endpoint.path if path else ''}/v1/traces"
        if self.protocol == "grpc":
            import grpc

            self.channel = grpc.insecure_channel(endpoint.netloc, options=[("grpc.use_local_subchannel_pool", 1)])
            self.call = self.channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        else:
            self.connection = http.client.HTTPConnection(endpoint.netloc, timeout=60)

    def export(self, spans: list[dict], resource: dict[str, str] | None = None, scope: str = "plain") -> bytes:
        """Send one request and return the body of its answer; anything but success ends the agent."""
        resource = resource or {"service.name": "mine"}
        if self.protocol == "grpc":
            answer = self.call(protobuf(spans, resource, scope), metadata=tuple(self.headers.items()), timeout=60)
            return bytes(answer)
        form = "json" if self.protocol == "http/json" else "x-protobuf"
        body = (as_json if form == "json" else protobuf)(spans, resource, scope)
        self.connection.request("POST", self.path, body, {"content-type": f"application/{form}", **self.headers})
        answer = self.connection.getresponse()
        assert answer.status == 200, (answer.status, answer.read())
        return answer.read()

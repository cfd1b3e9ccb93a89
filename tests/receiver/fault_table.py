"""What a broken request is answered, over each protocol: the table of docs/faults.md, row for row."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.trace.v1 import trace_pb2
from otlp_messages import any_value, as_json, logs, number, record, span, traces

NOT_APPLICABLE = "–"
MEGABYTE = 1_000_000
Row = dict[str, Any]
"""A stored span: name, parent, start_ns, end_ns, attributes."""


@dataclass(frozen=True)
class Fault:
    """One row. An answer is gRPC's code or HTTP's status, with the number of rejected spans of a partial success."""

    name: str
    grpc: str
    protobuf: str
    json: str
    kept: str
    """What of it is stored, in words."""
    words: str
    """What the message must say; empty where there is nothing to say."""
    bodies: Callable[[], tuple[bytes, bytes]]
    """The request as protobuf and as JSON."""
    stored: Callable[[list[Row]], bool] = lambda rows: rows == []
    """Whether exactly what `kept` says is stored."""
    headers: dict[str, str] = field(default_factory=dict)
    """Of the HTTP request."""

    def markdown(self) -> str:
        """The row as docs/faults.md shows it."""
        return f"| {self.name} | {self.grpc} | {self.protobuf} | {self.json} | {self.kept} |"


def _both(message: trace_pb2.TracesData) -> tuple[bytes, bytes]:
    return message.SerializeToString(), json.dumps(as_json(message)).encode()


def _spoiled(word: bytes, spoiled: bytes, message: trace_pb2.TracesData) -> tuple[bytes, bytes]:
    raw, text = _both(message)
    return raw.replace(word, spoiled), text.replace(word, spoiled)


def _cut() -> tuple[bytes, bytes]:
    raw, text = _both(traces(span("cut", attributes={"a": "x" * 100})))
    return raw[:-20], text[:-20]


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def _deep_value() -> tuple[bytes, bytes]:
    """A good span next to one whose attribute is nested 5 000 levels deep."""
    from clawtrace.receiver.decode.protobuf import message_class

    inner = any_value("x").SerializeToString()
    for _ in range(5_000):
        for tag in (b"\x0a", b"\x2a"):
            inner = tag + _varint(len(inner)) + inner
    message = traces(span("deep", attributes={"deep": 1}), span("good"))
    view = message_class("trace.v1.TracesData").FromString(message.SerializeToString())
    view.resource_spans[0].scope_spans[0].spans[0].attributes[0] = b"\x0a\x04deep\x12" + _varint(len(inner)) + inner
    text = json.dumps(as_json(message)).replace(
        '{"intValue": "1"}', '{"arrayValue":{"values":[' * 5_000 + '{"stringValue":"x"}' + "]}}" * 5_000
    )
    assert len(text) > 100_000
    return view.SerializeToString(), text.encode()


def _deep_tree() -> tuple[bytes, bytes]:
    spans = [
        span(f"s{n}", span_id=f"{n:x}", parent_span_id=number(f"{n - 1:x}", 8) if n > 1 else b"")
        for n in range(1, 5_001)
    ]
    return _both(traces(*spans))


def _large() -> tuple[bytes, bytes]:
    return bytes(100 * MEGABYTE), b" " * (100 * MEGABYTE)


def _bad_ids() -> tuple[bytes, bytes]:
    bad = [
        trace_pb2.Span(name="zero trace", trace_id=bytes(16), span_id=number("1", 8)),
        trace_pb2.Span(name="zero span", trace_id=number("1", 16), span_id=bytes(8)),
        trace_pb2.Span(name="short trace", trace_id=b"\x01" * 4, span_id=number("1", 8)),
        trace_pb2.Span(name="short span", trace_id=number("1", 16), span_id=b"\x01"),
    ]
    return _both(traces(span("good"), *bad))


def _names(*names: str) -> Callable[[list[Row]], bool]:
    return lambda rows: sorted(row["name"] for row in rows) == sorted(names)


def _times(rows: list[Row]) -> bool:
    return {(row["start_ns"], row["end_ns"]) for row in rows} == {(0, 2**64 - 1), (2**64 - 1, 0)}


def _parents(rows: list[Row]) -> bool:
    return {row["name"]: row["parent"] for row in rows} == {
        "self": f"{1:016x}",
        "one": f"{3:016x}",
        "two": f"{2:016x}",
    }


def _cycle() -> tuple[bytes, bytes]:
    parents = {"self": ("1", "1"), "one": ("2", "3"), "two": ("3", "2")}
    return _both(traces(*(span(n, span_id=own, parent_span_id=number(up, 8)) for n, (own, up) in parents.items())))


BAD = ("`INVALID_ARGUMENT`", "400", "400")
LARGE = ("`RESOURCE_EXHAUSTED`", "413", "413")
FINE = ("`OK`", "200", "200")
ONE_REJECTED = ("`OK`, 1 rejected", "200, 1 rejected")
TYPE = (NOT_APPLICABLE, "415", "415")

FAULTS = [
    Fault("garbage", *BAD, "nothing", "body", lambda: (b"\xff\xff\xff\xff", b"\xff{nonsense")),
    Fault("a truncated body", *BAD, "nothing", "body", _cut),
    Fault("a body of another signal", *BAD, "nothing", "contains logs, not traces; send it to `/v1/logs`", lambda: _both(logs(record("e", body="text")))),  # type: ignore[arg-type]
    Fault("a body of 100 MB", *LARGE, "nothing", "", _large),
    Fault("a gzip bomb: 100 MB from 100 kB", *LARGE, "nothing", "", _large, headers={"content_encoding": "gzip"}),
    Fault("a truncated gzip stream", NOT_APPLICABLE, "400", "400", "nothing", "gzip", lambda: tuple(gzip.compress(body)[:-9] for body in _both(traces(span("s")))), headers={"content_encoding": "gzip"}),  # type: ignore[arg-type,return-value]
    Fault("a wrong content type", *TYPE, "nothing", "`content-type` is 'text/plain'", lambda: _both(traces(span("s"))), headers={"content_type": "text/plain"}),
    Fault("an unknown content encoding", *TYPE, "nothing", "`content-encoding` is 'br'", lambda: _both(traces(span("s"))), headers={"content_encoding": "br"}),
    Fault("invalid UTF-8 in a text", *FINE, "the span, U+FFFD for each invalid byte", "", lambda: _spoiled(b"spoiled", b"sp\xffiled", traces(span("spoiled"))), _names("sp\ufffdiled")),
    Fault("a lone surrogate in JSON (`\\ud800`)", NOT_APPLICABLE, NOT_APPLICABLE, "200", "the span, U+FFFD for the surrogate", "", lambda: _spoiled(b"spoiled", b"sp\\ud800iled", traces(span("spoiled"))), _names("sp\ufffdiled")),
    Fault("a value nested 5 000 deep", *ONE_REJECTED, "400", "protobuf: every other span; JSON: nothing", "nested", _deep_value, lambda rows: _names("good")(rows) or rows == []),
    Fault("a tree 5 000 deep", *FINE, "every span", "", _deep_tree, lambda rows: len(rows) == 5_000),
    Fault("a number that is NaN or infinite", *FINE, "the span, with `NaN` and `Infinity`", "", lambda: _both(traces(span("s", attributes={"a": float("nan"), "b": float("inf")}))), lambda rows: [row["attributes"] for row in rows] == [{"a": "NaN", "b": "Infinity"}]),
    Fault("an attribute of 1 MB", *FINE, "the whole span", "", lambda: _both(traces(span("s", attributes={"a": "x" * MEGABYTE}))), lambda rows: [len(row["attributes"]["a"]) for row in rows] == [MEGABYTE]),
    Fault("times of 0 and of 2^64-1", *FINE, "the spans, times as sent", "", lambda: _both(traces(span("s", start_time_unix_nano=0, end_time_unix_nano=2**64 - 1), span("t", start_time_unix_nano=2**64 - 1, end_time_unix_nano=0))), _times),
    Fault("a span that is its own parent, and a cycle of two", *FINE, "the spans; the cycle is cut in the tree and reported", "", _cycle, _parents),
    Fault("the same ids twice in one request", *FINE, "one span, the other counted as a duplicate", "", lambda: _both(traces(span("first", span_id="1"), span("second", span_id="1"))), _names("first")),
    Fault("all-zero ids, and short ids", "`OK`, 4 rejected", "200, 4 rejected", "200, 4 rejected", "every other span", "the trace id is zero", _bad_ids, _names("good")),
]  # fmt: skip

TITLES = "| sent | gRPC | HTTP, protobuf | HTTP, JSON | stored |\n|---|---|---|---|---|"


def request_table() -> str:
    """The table of requests, as the page has it."""
    return "\n".join([TITLES, *(fault.markdown() for fault in FAULTS)])

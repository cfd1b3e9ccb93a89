"""Answers in the words of OTLP: success, partial success, `google.rpc.Status`, `RetryInfo`.

The four messages are a few fields each and are written here by hand, so that answering JSON needs no protobuf and no
generated code is added for them (google.rpc is not part of opentelemetry-proto).
"""

from __future__ import annotations

import json
from typing import Any

from clawtrace.receiver.request import RequestAnswer, Signal

__all__ = ["Code", "retry_info", "status_body", "success_body"]

_REJECTED: dict[Signal, str] = {
    "traces": "rejectedSpans",
    "logs": "rejectedLogRecords",
    "metrics": "rejectedDataPoints",
}


class Code:
    """Numbers of google.rpc.Code."""

    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value) if value else b""


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value if value else b""


def success_body(signal: Signal, answer: RequestAnswer, *, as_json: bool) -> bytes:
    """Return the body of ``Export…ServiceResponse``: empty, or a partial success with the count and why."""
    if as_json:
        partial = {_REJECTED[signal]: str(answer.rejected), "errorMessage": answer.message}
        return _json({"partialSuccess": partial} if answer.rejected else {})
    return _bytes(1, _number(1, answer.rejected) + _bytes(2, answer.message.encode())) if answer.rejected else b""


def retry_info(seconds: int) -> bytes:
    """Return a serialised ``google.rpc.RetryInfo``."""
    return _bytes(1, _number(1, seconds)) or b"\x0a\x00"


def status_body(code: int, message: str, *, as_json: bool, retry_after_s: int | None = None) -> bytes:
    """Return a ``google.rpc.Status``, with a ``RetryInfo`` when the request may be sent again."""
    if as_json:
        status: dict[str, Any] = {"code": code, "message": message}
        if retry_after_s is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            status["details"] = [{"@type": kind, "retryDelay": f"{retry_after_s}s"}]
        return _json(status)
    body = _number(1, code) + _bytes(2, message.encode("utf-8", "replace"))
    if retry_after_s is not None:
        body += _bytes(3, _bytes(1, b"type.googleapis.com/google.rpc.RetryInfo") + _bytes(2, retry_info(retry_after_s)))
    return body


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()

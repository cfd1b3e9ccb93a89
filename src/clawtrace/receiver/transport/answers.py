"""Answers in the words of OTLP: success, partial success, `google.rpc.Status`, `RetryInfo`."""

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


def success_body(signal: Signal, answer: RequestAnswer, *, as_json: bool) -> bytes:
    """Return the body of ``Export…ServiceResponse``: empty, or a partial success with the count and why."""
    if not answer.rejected:
        return b"{}" if as_json else b""
    if as_json:
        partial = {_REJECTED[signal]: str(answer.rejected), "errorMessage": answer.message}
        return json.dumps({"partialSuccess": partial}).encode()
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTracePartialSuccess,
        ExportTraceServiceResponse,
    )

    # The responses for the three signals differ in names only.
    few = ExportTracePartialSuccess(rejected_spans=answer.rejected, error_message=answer.message)
    return ExportTraceServiceResponse(partial_success=few).SerializeToString()


def retry_info(seconds: int) -> Any:
    """Return a ``google.rpc.RetryInfo``."""
    from google.protobuf.duration_pb2 import Duration
    from google.rpc.error_details_pb2 import RetryInfo

    return RetryInfo(retry_delay=Duration(seconds=seconds))


def status_body(code: int, message: str, *, as_json: bool, retry_after_s: int | None = None) -> bytes:
    """Return a ``google.rpc.Status``, with a ``RetryInfo`` when the request may be sent again."""
    from google.protobuf.json_format import MessageToJson
    from google.rpc.status_pb2 import Status

    status = Status(code=code, message=message.encode("utf-8", "replace").decode())
    if retry_after_s is not None:
        status.details.add().Pack(retry_info(retry_after_s))
    return MessageToJson(status, indent=None).encode() if as_json else status.SerializeToString()

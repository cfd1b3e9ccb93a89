"""One request on its way: what came in, where from, what a decoder hands back, and the answer it gets, in the words of OTLP.

Success, partial success, `google.rpc.Status`, `RetryInfo`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from clawtrace.receiver.attribution.connections import Connection

__all__ = [
    "SIGNALS",
    "BadItemError",
    "BadPayloadError",
    "Code",
    "Request",
    "RequestAnswer",
    "RequestOutcome",
    "Signal",
    "retry_info",
    "sender_of",
    "status_body",
    "success_body",
]

Signal = Literal["traces", "logs", "metrics"]
SIGNALS: Mapping[Signal, str] = {"traces": "Spans", "logs": "Logs", "metrics": "Metrics"}
"""The suffix of each signal's field names in OTLP."""


class BadPayloadError(Exception):
    """A request that will never be accepted; its text says why, for the one who sent it."""


class BadItemError(Exception):
    """One span or log record that will never be accepted; its text says why."""


Protocol = Literal["grpc", "http/protobuf", "http/json", "file", "sdk"]


Sender = Literal["sdk", "collector", "other"]

_SDK_EXPORTER = re.compile("otel[- ]otlp[- ]exporter", re.IGNORECASE)
_COLLECTOR = re.compile("collector|otelcol", re.IGNORECASE)


def sender_of(user_agent: str) -> Sender:
    """Return what sent a request (OpenTelemetry Protocol Exporter specification, "User Agent").

    A Collector gives the description of its distribution, such as ``OpenTelemetry Collector Contrib/0.161.0 (linux/amd64)``.
    """
    if _SDK_EXPORTER.match(user_agent):
        return "sdk"
    return "collector" if _COLLECTOR.search(user_agent) else "other"


class RequestOutcome(Enum):
    """The outcome of a request; each protocol maps it to its own status."""

    ACCEPTED = "accepted"
    """Durable, apart from the items counted as rejected."""
    BAD = "bad"
    """Will never be accepted."""
    REFUSED = "refused"
    """Turned away; a retry may be accepted."""
    BROKEN = "broken"
    """clawtrace itself failed on it."""


class RequestAnswer(NamedTuple):
    """The answer to the sender."""

    outcome: RequestOutcome
    rejected: int = 0
    """Items of an accepted request that will never be accepted."""
    message: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Request:
    """One request, decompressed."""

    signal: Signal
    protocol: Protocol
    body: bytes
    json: bool
    """Whether the body is JSON (else protobuf)."""
    arrival_ns: int
    port: int = 0
    """The port on which it arrived; 0 for a file and for this process."""
    header_run: str = ""
    """Run id of the header or metadata `x-clawtrace-run-id`."""
    path_run: str = ""
    """Run id of the path ``/run/<id>/v1/…``."""
    sender: Sender = "other"
    """The sender, from the User-Agent."""
    connection: Connection | None = None
    answer: Callable[[RequestAnswer], None] = field(default=lambda _: None)
    """Called once, from the writer's thread, when everything that was accepted is durable."""
    runs: tuple[int, ...] = ()
    """Runs that it brought spans or log records of, as first seen; filled in when it is decoded."""
    outside: int = 0
    """Log records that belong to no trace and no run; filled in when it is decoded."""
    given_run: str = ""
    """Run id of everything in it, where the caller says so; no rule of attribution is asked then."""
    document: Any = None
    """The parsed body, where the caller has it."""

    @property
    def passed_on(self) -> bool:
        """Whether it names no run in header or path and no SDK's own exporter sent it: a Collector or a proxy did, as a rule."""
        return not (self.header_run or self.path_run or self.given_run or self.sender == "sdk")


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

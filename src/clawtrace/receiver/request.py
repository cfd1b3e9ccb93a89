"""One request on its way: what came in, where from, and the answer it gets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple

from clawtrace.receiver.attribution.connections import Connection
from clawtrace.receiver.payload import Signal

__all__ = ["Protocol", "Request", "RequestAnswer", "RequestOutcome", "is_sdk_exporter"]

Protocol = Literal["grpc", "http/protobuf", "http/json", "file", "sdk"]


_SDK_EXPORTER = re.compile("otel[- ]otlp[- ]exporter", re.IGNORECASE)


def is_sdk_exporter(user_agent: str) -> bool:
    """Say whether an SDK's own exporter sent a request (OpenTelemetry Protocol Exporter specification, "User Agent").

    A Collector or another service that passes spans on gives a name of its own.
    """
    return _SDK_EXPORTER.match(user_agent) is not None


class RequestOutcome(Enum):
    """What happened to a request; each protocol has its own words for it."""

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
    """Which of our ports it came through; 0 for a file and for this process."""
    header_run: str = ""
    """Run id of the header or metadata `x-clawtrace-run-id`."""
    path_run: str = ""
    """Run id of the path ``/run/<id>/v1/…``."""
    by_sdk: bool = False
    """Whether an SDK's own exporter sent it, as its User-Agent says."""
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
        return not (self.header_run or self.path_run or self.given_run or self.by_sdk)

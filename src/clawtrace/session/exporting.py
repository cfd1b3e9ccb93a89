"""An exported run in other forms than lines of OTLP JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

__all__ = ["request_of", "write_parquet_of", "write_protobuf"]

_IDS = ("traceId", "spanId", "parentSpanId")


def write_protobuf(lines: Iterable[str], out: IO[bytes]) -> None:
    """Write requests as serialised messages, each after its length as a varint.

    Args:
        lines: requests of OTLP JSON.
    """
    from google.protobuf.proto import serialize_length_prefixed

    for line in lines:
        serialize_length_prefixed(request_of(line), cast(BytesIO, out))  # any stream will do


def request_of(line: str) -> Any:
    """Return a request of OTLP JSON as a message."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    document = json.loads(line, object_hook=_with_base64)
    kind: Any = ExportTraceServiceRequest if "resourceSpans" in document else ExportLogsServiceRequest
    return ParseDict(document, kind())


def _with_base64(found: dict[str, Any]) -> dict[str, Any]:
    """Write ids as JSON of protobuf has bytes; OTLP has hexadecimal digits."""
    if "key" not in found:  # an attribute may have any name, but is no item
        for name in _IDS:
            if isinstance(found.get(name), str):
                found[name] = base64.b64encode(bytes.fromhex(found[name])).decode()
    return found


def write_parquet_of(run_id: str, lines: Iterable[str], folder: Path) -> list[Path]:
    """Write a run into a folder as Parquet; return the files.

    Args:
        lines: its requests of OTLP JSON.

    Raises:
        InputError: a file cannot be written.
    """
    from clawtrace.receiver.recordings.recording import load_requests
    from clawtrace.receiver.redaction.redact import RedactionSettings
    from clawtrace.receiver.request import Signal
    from clawtrace.store.duckdb import DuckStore
    from clawtrace.store.export import write_parquet

    def requests() -> Iterable[tuple[Signal, str]]:
        for line in lines:
            yield ("traces" if line.startswith('{"resourceSpans"') else "logs"), line

    with closing(DuckStore()) as store:
        load_requests(requests(), store, redaction=RedactionSettings(enabled=False))  # what is stored was redacted
        return write_parquet(store, run_id, folder)

"""A log's content as an OTLP request, so that it is processed like everything else: decoded, redacted, committed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from clawtrace.logs.conversation import as_text
from clawtrace.logs.model import LoggedSpan
from clawtrace.support.otlp_json import pairs, request

__all__ = ["SCOPE", "as_logs", "as_traces"]

SCOPE = "clawtrace.logs."
"""Beginning of the instrumentation scope of everything that was read from a log; the form's name follows."""

_WITHOUT_TOOLS = ".without_tools"
"""End of the scope of a log that would not record a tool call."""

_REQUEST_ITEMS = 5_000


def as_traces(
    spans: Sequence[LoggedSpan], form: str, file: str, *, tells_tools: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the spans of a run as ``ExportTraceServiceRequest``s."""
    scope = SCOPE + form + ("" if tells_tools else _WITHOUT_TOOLS)
    return _requests("Spans", (_span(span, form) for span in spans), scope, file)


def as_logs(found: Sequence[tuple[LoggedSpan, str, str]], form: str, file: str) -> Iterator[dict[str, Any]]:
    """Yield what spans of a log add to spans that were received, as ``ExportLogsServiceRequest``s.

    Args:
        found: each with the trace and span id of the received span that it describes.
    """
    return _requests("Logs", (_record(*one) for one in found), SCOPE + form, file)


def _requests(
    signal: Literal["Spans", "Logs"], encoded: Iterator[dict[str, Any]], scope: str, file: str
) -> Iterator[dict[str, Any]]:
    resource = _attributes({"log.file.name": file})
    while part := list(islice(encoded, _REQUEST_ITEMS)):
        yield request(signal, ((resource, {"name": scope}, item) for item in part))


def _record(span: LoggedSpan, trace_id: str, span_id: str) -> dict[str, Any]:
    more = {"clawtrace.log.line": span.line} | ({} if span.error is None else {"error.message": span.error})
    return {
        "timeUnixNano": str(span.end_ns or span.start_ns or 1),
        "traceId": trace_id,
        "spanId": span_id,
        "eventName": f"clawtrace.log.{span.kind}",
        "attributes": _attributes(span.attributes | more),
    }


def _span(span: LoggedSpan, form: str) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "traceId": _trace_id(span, form),
        "spanId": _span_id(span),
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.start_ns),
        # What ended at an unknown time has ended all the same: 0 means that it never did.
        "endTimeUnixNano": "0" if span.end_ns is None else str(max(span.end_ns, 1)),
        "attributes": _attributes(span.attributes | {"clawtrace.log.line": span.line}),
    }
    if span.parent is not None:
        encoded["parentSpanId"] = _span_id(span.parent)
    if span.error is not None:
        encoded["status"] = {"code": 2, "message": span.error}
    return encoded


def _trace_id(span: LoggedSpan, form: str) -> str:
    top = span
    while top.parent is not None:
        top = top.parent
    return hashlib.md5(f"{form}\0{top.run_id}\0{top.turn}".encode(), usedforsecurity=False).hexdigest()


def _span_id(span: LoggedSpan) -> str:
    """Return an id that grows with the lines of a file: spans of the same time stay in the order of their lines."""
    of_run = hashlib.md5(span.run_id.encode(), usedforsecurity=False).hexdigest()[:4]
    return f"{of_run}{span.line & 0xFFFFFFFF:08x}{span.part & 0xFFFF:04x}"


def _attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return pairs({key: as_text(value) if isinstance(value, dict) else value for key, value in attributes.items()})

"""Find out from the content what a payload is: which signal, in which encoding, or traces in another form than OTLP.

Those that hold OTLP in an envelope are unwrapped, the others are named.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from clawtrace.receiver.request import SIGNALS, Signal

__all__ = ["JSON_KEYS", "document_signals", "foreign_form", "protobuf_signal", "unwrapped"]

JSON_KEYS: dict[str, Signal] = {
    "resourceSpans": "traces",
    "resource_spans": "traces",
    "resourceLogs": "logs",
    "resource_logs": "logs",
    "resourceMetrics": "metrics",
    "resource_metrics": "metrics",
}
"""The key that makes a JSON object a request of a signal."""

_SAMPLE = 20


def document_signals(document: Any, *, filled: bool = False) -> list[Signal]:
    """Return the signals that a parsed JSON document holds, none when it is no OTLP request.

    Args:
        filled: whether only those count that it holds something of.
    """
    if not isinstance(document, dict):
        return []
    held = (key for key in JSON_KEYS if (document.get(key) if filled else key in document))
    return list(dict.fromkeys(JSON_KEYS[key] for key in held))


def protobuf_signal(data: bytes) -> Signal | None:
    """Return the signal of a serialised request, None when it is none or has no item to recognise it by.

    The three messages have the same outline, so each reads as each; they differ in that the fields of an
    item have other types at the same numbers.
    """
    from google.protobuf.message import DecodeError

    from clawtrace.receiver.decode.wire import MESSAGE_PARTS, groups_of

    for signal in SIGNALS:
        parts = MESSAGE_PARTS[signal]
        try:
            groups = groups_of(parts, data)
        except DecodeError:
            continue
        found = (
            item for group in groups for scope in getattr(group, parts.scopes) for item in getattr(scope, parts.items)
        )
        sample = list(islice(found, _SAMPLE))
        if sample and all(_plausible(signal, item) for item in sample):
            return signal
    return None


def _plausible(signal: Signal, item: Any) -> bool:
    """Say whether an item has what its signal needs and no field of another type at a known number."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    known = item.DESCRIPTOR.fields_by_number
    unknown = UnknownFieldSet(item)
    if any(unknown[place].field_number in known for place in range(len(unknown))):
        return False
    if signal == "traces":
        return len(item.trace_id) == 16 and len(item.span_id) == 8
    if signal == "metrics":
        return bool(item.name) and item.WhichOneof("data") is not None
    return bool(item.time_unix_nano or item.observed_time_unix_nano or item.body or item.attributes or item.event_name)


_COLLECTOR = "send the traces through an OpenTelemetry Collector, which reads that format, and judge the output of its file exporter"
_ENVELOPES = ("result", "trace")
"""``{"result": {"resourceSpans": …}}`` is Jaeger's API of version 3, ``{"trace": {"resourceSpans": …}}`` Grafana Tempo's of 2."""


def unwrapped(document: Any) -> Any:
    """Return the OTLP request of an API's answer; any other document as it is."""
    if not isinstance(document, dict):
        return document
    for name in _ENVELOPES:
        inner = document.get(name)
        if isinstance(inner, dict) and not inner.keys().isdisjoint(("resourceSpans", "batches")):
            document = inner
    if "batches" in document and "resourceSpans" not in document and _is_tempo(document["batches"]):
        return {"resourceSpans": document["batches"]}
    return document


def _is_tempo(batches: Any) -> bool:
    """Say whether these are `ResourceSpans`, as Grafana Tempo's API of version 1 writes them."""
    return isinstance(batches, list) and all(
        isinstance(one, dict) and not one.keys().isdisjoint(("scopeSpans", "instrumentationLibrarySpans"))
        for one in batches
    )


def foreign_form(document: Any) -> str:
    """Say which form of traces a JSON document has and what to do about it; empty where it is none that is known."""
    if isinstance(document, list) and document:
        document = document[0]
    if isinstance(document, list) and document:  # traces of spans, as Zipkin and Datadog write them
        document = document[0]
    if not isinstance(document, dict):
        return ""
    return next((f"this is {name}, not OTLP: {advice}" for name, advice, fits in _FORMS if fits(document)), "")


def _has(*names: str) -> Callable[[dict[str, Any]], bool]:
    return lambda document: all(name in document for name in names)


def _first(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the first object of a list, empty when there is none."""
    found = document.get(name)
    return found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}


def _is_jaeger(document: dict[str, Any]) -> bool:
    trace = _first(document, "data") or document
    return "traceID" in trace and ("spans" in trace or "operationName" in trace)


def _is_zipkin(document: dict[str, Any]) -> bool:
    marks = ("localEndpoint", "remoteEndpoint", "annotations", "binaryAnnotations")
    return _has("traceId", "id")(document) and not document.keys().isdisjoint(marks)


def _is_console(document: dict[str, Any]) -> bool:
    context = document.get("context")
    return "name" in document and isinstance(context, dict) and _has("trace_id", "span_id")(context)


def _is_mlflow(document: dict[str, Any]) -> bool:
    data = document.get("data")
    return isinstance(document.get("info"), dict) and isinstance(data, dict) and "spans" in data


def _is_single_span(document: dict[str, Any]) -> bool:
    pairs = (("traceId", "spanId"), ("trace_id", "span_id"))
    return "name" in document and any(_has(*pair)(document) for pair in pairs)


_FORMS: tuple[tuple[str, str, Callable[[dict[str, Any]], bool]], ...] = (
    (
        "Jaeger's JSON",
        "fetch the trace as OTLP from Jaeger's `/api/v3/traces/TRACE_ID`, whose response can be read directly",
        _is_jaeger,
    ),
    ("Zipkin's JSON", _COLLECTOR, _is_zipkin),
    (
        "output of an SDK's console exporter",
        "give the SDK an OTLP exporter (`clawtrace run` sets its address), or export to a Collector's file",
        _is_console,
    ),
    (
        "LangSmith's JSON",
        "have its SDK export over OTLP (`telemetry_env: {langsmith: on}` in clawtrace.yaml)",
        _has("run_type", "dotted_order"),
    ),
    (
        "Langfuse's JSON",
        "have the agent's OpenTelemetry exporter send to clawtrace; Langfuse's SDKs use OpenTelemetry",
        lambda document: "type" in _first(document, "observations"),
    ),
    ("MLflow's JSON", "have MLflow export over OTLP (`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`)", _is_mlflow),
    ("Datadog's JSON", _COLLECTOR, _has("trace_id", "span_id", "service", "resource", "meta")),
    ("Chrome's trace format", "export over OTLP", _has("traceEvents")),
    (
        "single spans",
        "OTLP wraps them in `resourceSpans`, `scopeSpans`, `spans`; export them with an OTLP exporter",
        _is_single_span,
    ),
)
"""Name, what to do, and how it is known; the first that fits."""

"""Find out from the content what a payload is: which signal, in which encoding, or traces in another form than OTLP.

Those that hold OTLP in an envelope are unwrapped; of the others it is known which are read (`recordings/imports/`), and what to do about
the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from clawtrace.receiver.request import SIGNALS, Signal

__all__ = [
    "JSON_KEYS",
    "ForeignForm",
    "document_signals",
    "foreign_form",
    "foreign_rows",
    "protobuf_signal",
    "unwrapped",
]

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


class ForeignForm(NamedTuple):
    """A form of traces other than OTLP."""

    name: str
    fits: Callable[[dict[str, Any]], bool]
    """Whether an object has it: a trace, a span, a run."""
    advice: str
    """What to do, where it was sent to the receiver or is not read."""
    reader: str = ""
    """The module of `recordings/imports/` that reads it; empty where none does."""
    lacks: str = ""
    """What it cannot say that OTLP does."""

    @property
    def sentence(self) -> str:
        """What a message says of it."""
        return f"this is {self.name}, not OTLP: {self.advice}"


def foreign_rows(document: Any) -> Iterator[tuple[ForeignForm | None, Any]]:
    """Yield the objects of a document that have a form of their tool, each with it: those of lists, and of the answers of APIs around them.

    The form is None of an object that has none that is known.
    """
    if isinstance(document, list):
        for one in document:
            yield from foreign_rows(one)
        return
    if isinstance(document, dict):
        form = next((form for form in _FORMS if form.fits(document)), None)
        inner = (document[name] for name in _LISTS if isinstance(document.get(name), list) and document[name])
        if form is None and (rows := next(inner, None)) is not None:
            yield from foreign_rows(rows)
            return
        yield form, document
        return
    yield None, document


def foreign_form(document: Any) -> str:
    """Say which form of traces a JSON document has and what to do about it; empty where it is none that is known."""
    form, _ = next(foreign_rows(document), (None, None))
    return form.sentence if form else ""


def _has(*names: str) -> Callable[[dict[str, Any]], bool]:
    return lambda document: all(name in document for name in names)


def _first(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the first object of a list, empty when there is none."""
    found = document.get(name)
    return found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}


def _is_jaeger(document: dict[str, Any]) -> bool:
    return "traceID" in document and ("spans" in document or "operationName" in document)


def _is_zipkin(document: dict[str, Any]) -> bool:
    marks = ("localEndpoint", "remoteEndpoint", "annotations", "tags")
    return _has("traceId", "id")(document) and not document.keys().isdisjoint(marks)


def _is_phoenix(document: dict[str, Any]) -> bool:
    context = document.get("context")
    named = _has("trace_id", "span_id")(context) if isinstance(context, dict) else "context.trace_id" in document
    return named and "span_kind" in document


def _is_console(document: dict[str, Any]) -> bool:
    context = document.get("context")
    return "name" in document and isinstance(context, dict) and _has("trace_id", "span_id")(context)


def _is_mlflow(document: dict[str, Any]) -> bool:
    data = document.get("data")
    if isinstance(document.get("info"), dict) and isinstance(data, dict):
        return "spans" in data
    attributes = document.get("attributes")
    return isinstance(attributes, dict) and "mlflow.traceRequestId" in attributes


_OBSERVATIONS = frozenset(
    ("SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
)


def _is_langfuse(document: dict[str, Any]) -> bool:
    if document.get("type") in _OBSERVATIONS and not document.keys().isdisjoint(("traceId", "trace_id")):
        return not document.keys().isdisjoint(("startTime", "start_time"))
    return _first(document, "observations").get("type") in _OBSERVATIONS


def _is_single_span(document: dict[str, Any]) -> bool:
    pairs = (("traceId", "spanId"), ("trace_id", "span_id"))
    return "name" in document and any(_has(*pair)(document) for pair in pairs)


_LISTS = ("data", "runs", "events", "traces", "spans", "rows")
"""What the lists are called in answers of APIs."""
_GIVE = "write it to a file and give that as a recording (`--traces FILE`), or send OTLP"
_FORMS: tuple[ForeignForm, ...] = (
    ForeignForm(
        "Jaeger's JSON", _is_jaeger, _GIVE, "jaeger",
        "lists as lists (they are text), attributes of links, and times finer than microseconds",
    ),
    ForeignForm(
        "Zipkin's JSON", _is_zipkin, _GIVE, "zipkin",
        "types of attributes, links, times finer than microseconds, and capitals in names that its server kept",
    ),
    ForeignForm(
        "Phoenix's JSON", _is_phoenix, _GIVE, "phoenix",
        "the resource, the instrumentation's name, links, and times finer than microseconds",
    ),
    ForeignForm(
        "output of an SDK's console exporter", _is_console,
        "give the SDK an OTLP exporter (`clawtrace run` sets its address), or export to a Collector's file",
    ),
    ForeignForm(
        "LangSmith's JSON", _has("run_type", "id"), _GIVE, "langsmith",
        "the resource, links, types of exceptions, and times finer than microseconds",
    ),
    ForeignForm(
        "Langfuse's JSON", _is_langfuse, _GIVE, "langfuse",
        "kinds of spans, links, types of exceptions, and times finer than milliseconds",
    ),
    ForeignForm("MLflow's JSON", _is_mlflow, _GIVE, "mlflow", "the resource, and the instrumentation's name"),
    ForeignForm(
        "Braintrust's JSON", _has("span_id", "root_span_id"), _GIVE, "braintrust",
        "the resource, kinds of spans, links, and types of exceptions",
    ),
    ForeignForm("Datadog's JSON", _has("trace_id", "span_id", "service", "resource", "meta"), _COLLECTOR),
    ForeignForm("Chrome's trace format", _has("traceEvents"), "export over OTLP"),
    ForeignForm(
        "single spans", _is_single_span,
        "OTLP wraps them in `resourceSpans`, `scopeSpans`, `spans`; export them with an OTLP exporter",
    ),
)  # fmt: skip
"""The first that fits."""

"""Formats of traces other than OTLP, recognised by content: which are read (`recordings/imports/`), and advice for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

__all__ = ["ForeignForm", "foreign_form", "foreign_rows", "has_more"]

_COLLECTOR = "send the traces through an OpenTelemetry Collector, which reads that format, and judge the output of its file exporter"


class ForeignForm(NamedTuple):
    """A form of traces other than OTLP."""

    name: str
    fits: Callable[[dict[str, Any]], bool]
    """Tells whether an object (a trace, a span, a run) has this form."""
    advice: str
    """Advice if it was sent to the receiver or is not read."""
    reader: str = ""
    """The module of `recordings/imports/` that reads it; empty where none does."""
    lacks: str = ""
    """What it lacks compared to OTLP."""

    @property
    def sentence(self) -> str:
        """Its description in a message."""
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
    """Return which form of traces a JSON document has and what to do about it; empty where it is none that is known."""
    form, _ = next(foreign_rows(document), (None, None))
    return form.sentence if form else ""


def has_more(document: Any) -> bool:
    """Return whether a document is one page of an API's answer that has more."""
    if not isinstance(document, dict):
        return False
    meta, cursors = document.get("meta"), document.get("cursors")
    if isinstance(meta, dict) and (meta.get("cursor") or meta.get("totalPages", 1) not in (0, 1)):
        return True
    return bool(document.get("next_cursor") or (isinstance(cursors, dict) and cursors.get("next")))


def _has(*names: str) -> Callable[[dict[str, Any]], bool]:
    return lambda document: all(name in document for name in names)


def _first(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the first object of a list; an empty one if there is none."""
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
    if str(document.get("type")) in _OBSERVATIONS and not document.keys().isdisjoint(("traceId", "trace_id")):
        return not document.keys().isdisjoint(("startTime", "start_time"))
    return str(_first(document, "observations").get("type")) in _OBSERVATIONS


def _is_single_span(document: dict[str, Any]) -> bool:
    pairs = (("traceId", "spanId"), ("trace_id", "span_id"))
    return "name" in document and any(_has(*pair)(document) for pair in pairs)


_LISTS = ("data", "runs", "events", "traces", "spans", "rows")
"""Names of the lists in answers of APIs."""
_GIVE = "write it to a file and give that as a recording (`--traces FILE`), or send OTLP"
_FORMS: tuple[ForeignForm, ...] = (
    ForeignForm(
        "Jaeger's JSON", _is_jaeger, _GIVE, "jaeger",
        "lists as lists (they are text), attributes of links, and times finer than microseconds",
    ),
    ForeignForm(
        "Langfuse's JSON", _is_langfuse, _GIVE, "langfuse",
        "kinds of spans, links, types of exceptions, and times finer than milliseconds",
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
"""The first that matches is used."""

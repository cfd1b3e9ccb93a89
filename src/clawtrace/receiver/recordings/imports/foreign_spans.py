"""Spans that another tool exported, and the request of OTLP JSON that they become; what every form's module uses.

A module has one function, `spans`, which yields the spans of an object of its form.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from clawtrace.support.otlp_json import pairs, request

__all__ = [
    "BadRowError",
    "ForeignSpan",
    "a_mapping",
    "as_json",
    "iso_time",
    "number_time",
    "objects_of",
    "of_span",
    "request_of",
    "scope_of",
    "span_id_of",
    "spans_of",
    "trace_id_of",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INT64 = 1 << 63
_KINDS = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_STATUS = {"OK": 1, "ERROR": 2}


class BadRowError(Exception):
    """An object of a known form that cannot be read; the text says what is wrong with it."""


@contextmanager
def of_span(span_id: Any, name: Any, called: str = "span") -> Iterator[None]:
    """Name the span in what is wrong with it."""
    try:
        yield
    except BadRowError as problem:
        raise BadRowError(f"{called} {span_id!r} {name!r}: {problem}") from None


@dataclass(slots=True)
class ForeignSpan:
    """One span: ids as its tool writes them, which become those of OTLP; times in nanoseconds; values as JSON has them.

    Raises:
        BadRowError: an id that is needed is missing.
    """

    trace_id: Any
    span_id: Any
    parent_id: Any
    """Nothing, where it has no parent."""
    name: str
    start: int
    end: int
    """0: it never ended, or the tool has not learnt of its end."""
    attributes: dict[str, Any]
    status: str = ""
    """`OK` or `ERROR`; anything else is unset."""
    message: str = ""
    kind: str = "INTERNAL"
    events: list[tuple[int, str, Mapping[str, Any]]] = field(default_factory=list)
    links: list[tuple[Any, Any]] = field(default_factory=list)
    """The trace and the span of each."""
    scope: tuple[str, str] = ("", "")
    """Name and version of the instrumentation."""
    resource: Mapping[str, Any] = field(default_factory=dict)
    dropped: int = 0
    """Attributes that were cut or left out, as far as is known."""

    def __post_init__(self) -> None:
        self.trace_id, self.span_id = trace_id_of(self.trace_id), span_id_of(self.span_id)
        self.parent_id = span_id_of(self.parent_id) if self.parent_id else ""
        self.links = [(trace_id_of(trace), span_id_of(span)) for trace, span in self.links]

    def as_otlp(self) -> dict[str, Any]:
        """Return the span as OTLP JSON writes it."""
        return {
            "traceId": self.trace_id,
            "spanId": self.span_id,
            "parentSpanId": self.parent_id,
            "name": self.name,
            "kind": _KINDS.get(str(self.kind).upper(), 0),
            "startTimeUnixNano": str(self.start),
            "endTimeUnixNano": str(self.end),
            "attributes": pairs(self.attributes),
            "droppedAttributesCount": self.dropped,
            "events": [
                {"timeUnixNano": str(time), "name": name, "attributes": pairs(attributes)}
                for time, name, attributes in self.events
            ],
            "links": [{"traceId": trace, "spanId": span} for trace, span in self.links],
            "status": {"code": _STATUS.get(str(self.status).upper(), 0), "message": self.message},
        }


def spans_of(reader: str, row: dict[str, Any]) -> list[ForeignSpan]:
    """Return the spans of an object, whose form the module `reader` reads.

    Raises:
        BadRowError: one of them cannot be read.
    """
    module = importlib.import_module(f"{__package__}.{reader}")
    try:
        found: Iterable[ForeignSpan] = module.spans(row)
        return list(found)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # a field of another type than the form's
        raise BadRowError(f"a field is missing or has another type than expected ({error})") from None


def request_of(spans: Iterable[ForeignSpan]) -> bytes:
    """Return a request that holds the spans, those of one resource and scope together."""
    items = (
        (pairs(span.resource), dict(zip(("name", "version"), span.scope, strict=True)), span.as_otlp())
        for span in spans
    )
    return json.dumps(request("Spans", items), separators=(",", ":")).encode()


def trace_id_of(value: Any) -> str:
    """Return 32 hexadecimal digits for the id of a trace: itself where it is one, or a UUID, else a hash of it."""
    return _hexadecimal(value, 32, "the trace")


def span_id_of(value: Any) -> str:
    """Return 16 hexadecimal digits for the id of a span: itself where it is one, else a hash of it."""
    return _hexadecimal(value, 16, "the span")


def _hexadecimal(value: Any, digits: int, what: str) -> str:
    text = value if isinstance(value, str) else ""
    if not text:
        raise BadRowError(f"the id of {what} is missing")
    plain = text.removeprefix("0x").replace("-", "").lower()
    if len(plain) <= digits and not plain.strip("0123456789abcdef"):
        return plain.zfill(digits)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=digits // 2).hexdigest()


def number_time(value: Any, what: str, nanoseconds: int) -> int:
    """Return a time that is a number of units of so many nanoseconds since 1970.

    Raises:
        BadRowError: it is none.
    """
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value * nanoseconds < 2 * _INT64:
        raise BadRowError(f"`{what}` is no time: {value!r}")
    # A number with a fraction has no more than microseconds.
    return value * nanoseconds if isinstance(value, int) else round(value * nanoseconds / 1000) * 1000


def iso_time(value: Any, what: str, *, needed: bool = False) -> int:
    """Return a time that is written as ISO 8601 does, in UTC where it names no zone; 0 where there is none.

    Raises:
        BadRowError: it is written in another way, or missing where it is needed.
    """
    if not needed and (value is None or value == ""):
        return 0
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise BadRowError(f"`{what}` is no time as ISO 8601 writes it: {value!r}") from None
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH
    return since // timedelta(microseconds=1) * 1000


def scope_of(tags: dict[str, Any]) -> tuple[str, str]:
    """Take the name and the version of the instrumentation out of the tags that OpenTelemetry's exporters write."""
    found, older = [
        (tags.pop(f"otel.{key}.name", ""), tags.pop(f"otel.{key}.version", "")) for key in ("scope", "library")
    ]
    return found if found[0] else older


def objects_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list; nothing where there is no list."""
    yield from (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def a_mapping(value: Any) -> dict[str, Any]:
    """Return an object, also one that is written as text; an empty one for anything else."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def as_json(value: Any) -> str:
    """Return a value as instrumentations put it into an attribute: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))

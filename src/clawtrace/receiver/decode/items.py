"""What a request is read as, from any encoding, and how its items become columns; values as text, enumerations and ids are the same for every protocol.

Scalars read as the Collector writes them (pcommon's ``Value.AsString``): shortest decimal digits, ``true``/``false``,
base64. Arrays and maps are compact JSON in the order sent.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any, NamedTuple

from clawtrace.model.raw import LogBatch, MapColumn, NestedMap, SpanBatch, StrList
from clawtrace.receiver.attribution.attribute import Claim
from clawtrace.receiver.request import BadItemError

__all__ = [
    "MAX_DEPTH",
    "NO_SPAN",
    "NO_TRACE",
    "SPAN_KINDS",
    "STATUS_CODES",
    "Attributes",
    "Decoded",
    "EventItem",
    "GroupItems",
    "LinkItem",
    "LogItem",
    "ScopeItems",
    "Section",
    "SpanItem",
    "append",
    "checked_ids",
    "double_text",
    "finite",
    "json_text",
]

NO_TRACE = "0" * 32
NO_SPAN = "0" * 16

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

SPAN_KINDS = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
STATUS_CODES = ("Unset", "Ok", "Error")


def checked_ids(trace_id: str, span_id: str, parent_id: str) -> tuple[str, str, str]:
    """Return the ids of a span (lower-case hex).

    A parent of zeros is no parent; one of another length is refused, because the tree cannot be built from it.

    Raises:
        BadItemError: they cannot be told from those of others.
    """
    if len(trace_id) != 32 or len(span_id) != 16 or trace_id == NO_TRACE or span_id == NO_SPAN:
        for what, value, zero in (("trace id", trace_id, NO_TRACE), ("span id", span_id, NO_SPAN)):
            if not value:
                raise BadItemError(f"the {what} is missing")
            if len(value) != len(zero):
                raise BadItemError(f"the {what} has {len(value) // 2} bytes instead of {len(zero) // 2}")
            if value == zero:
                raise BadItemError(f"the {what} is zero")
    if parent_id and len(parent_id) != 16:
        raise BadItemError(f"the parent span id has {len(parent_id) // 2} bytes instead of 8")
    return trace_id, span_id, "" if parent_id == NO_SPAN else parent_id


MAX_DEPTH = 100
"""Deepest nesting of an attribute's value that is read."""


def double_text(value: float) -> str:
    """Return `value` in its shortest form: no trailing ``.0``, an exponent only below 1e-6 and from 1e21."""
    if not math.isfinite(value):
        return str(finite(value))
    text = repr(value)
    if text.endswith(".0"):
        return text[:-2]
    if "e" not in text:
        return text
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(text), "f")
    mantissa, exponent = text.split("e")
    return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].lstrip('0')}"


def finite(value: float) -> float | str:
    """Return `value`, or protobuf's JSON word for what JSON cannot write (``NaN``, ``Infinity``, ``-Infinity``)."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def json_text(value: Any) -> str:
    """Return a list or dict as compact JSON."""
    return _COMPACT.encode(value)


Attributes = tuple[dict[str, str], str]
"""Values by key, type letters in the same order."""


class EventItem(NamedTuple):
    """An event of a span."""

    time_ns: int
    name: str
    attributes: dict[str, str]


class LinkItem(NamedTuple):
    """A link of a span."""

    trace_id: str
    span_id: str
    state: str
    attributes: dict[str, str]


class SpanItem(NamedTuple):
    """A span, its plain columns first, under their names."""

    trace_id: str
    span_id: str
    parent_span_id: str
    trace_state: str
    name: str
    kind: str
    start_ns: int
    end_ns: int
    status_code: str
    status_message: str
    flags: int
    dropped_attributes: int
    dropped_events: int
    dropped_links: int
    attributes: Attributes
    events: Sequence[EventItem]
    links: Sequence[LinkItem]


class LogItem(NamedTuple):
    """A log record, its plain columns first, under their names."""

    time_ns: int
    observed_ns: int
    trace_id: str
    span_id: str
    flags: int
    severity_text: str
    severity_number: int
    body: str
    event_name: str
    dropped_attributes: int
    attributes: Attributes


class ScopeItems(NamedTuple):
    """The unread items of a scope and their shared values."""

    name: str
    version: str
    schema: str
    attributes: Mapping[str, str]
    items: Sequence[Any]


class GroupItems(NamedTuple):
    """A `Resource…` message: the attributes of the resource, not yet read, and its scopes."""

    resource: Any
    schema: str
    scopes: Sequence[ScopeItems]


class Section(NamedTuple):
    """The spans or log records of one scope and their shared values."""

    items: Sequence[Any]
    resource: Attributes
    schema: str
    scope: ScopeItems


class Decoded:
    """What was read of one request.

    Args:
        suspect: whether it may contain a secret; of resources and reasons they are taken out already.
    """

    def __init__(self, suspect: bool) -> None:
        self.suspect = suspect
        self.sections: list[Section] = []
        """The spans or log records of each scope."""
        self.claims: list[Claim] = []
        """The claim of each span or log record about its run."""
        self.points: Counter[Claim] = Counter()
        """Metric data points, counted only."""
        self.rejected: Counter[tuple[Claim, str]] = Counter()
        """Rejected items: their claims about the run, and the reason."""


def append(batch: SpanBatch | LogBatch, items: Sequence[Any], section: Section) -> None:
    """Append some items of a section."""
    if not items:
        return
    for name, cells in zip(items[0]._fields, zip(*items, strict=True), strict=True):
        if name not in ("attributes", "events", "links"):
            getattr(batch, name).extend(cells)
    count = len(items)
    (values, letters), schema, scope = section.resource, section.schema, section.scope
    for item in items:
        _add_map(batch.attributes, item.attributes[0])
        batch.attribute_types.append(item.attributes[1])
        _add_map(batch.resource, values)
        _add_map(batch.scope_attributes, scope.attributes)
    batch.service += [values.get("service.name", "")] * count
    batch.scope += [scope.name] * count
    batch.scope_version += [scope.version] * count
    if isinstance(batch, SpanBatch):
        batch.resource_types += [letters] * count
        _add_nested(batch, items)
    else:
        batch.resource_schema += [schema] * count
        batch.scope_schema += [scope.schema] * count


def _add_nested(batch: SpanBatch, spans: Sequence[Any]) -> None:
    """Append the events and links of spans."""
    events, ends = _laid_out([span.events for span in spans])
    _add_list(batch.event_times, [event.time_ns for event in events], ends)
    _add_list(batch.event_names, [event.name for event in events], ends)
    _add_maps(batch.event_attributes, events, ends)
    links, ends = _laid_out([span.links for span in spans])
    _add_list(batch.link_trace_ids, [link.trace_id for link in links], ends)
    _add_list(batch.link_span_ids, [link.span_id for link in links], ends)
    _add_list(batch.link_states, [link.state for link in links], ends)
    _add_maps(batch.link_attributes, links, ends)


def _laid_out(lists: Sequence[Sequence[Any]]) -> tuple[list[Any], list[int]]:
    """Return the concatenated items of lists, and the end of each list in them."""
    return [item for one in lists for item in one], [*accumulate(map(len, lists))]


def _add_map(column: MapColumn, values: Mapping[str, str]) -> None:
    column.keys += values
    column.values += values.values()
    column.offsets.append(len(column.keys))


def _add_list(column: StrList, values: list[Any], ends: list[int]) -> None:
    base = len(column.values)
    column.values += values
    column.offsets += [base + end for end in ends]


def _add_maps(column: NestedMap, items: list[Any], ends: list[int]) -> None:
    base = column.offsets[-1]
    for item in items:
        _add_map(column.maps, item.attributes)
    column.offsets += [base + end for end in ends]

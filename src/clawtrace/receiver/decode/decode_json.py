"""OTLP JSON to columns: hex ids, 64-bit integers as text or number, enumerations by name or number.

Unknown fields are ignored, ``snake_case`` names are accepted as well as ``camelCase``. The columns are the same as from
protobuf. Nothing of protobuf is imported. Spans as exporters write them are read by `regular_json`, at a quarter of the cost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from clawtrace.model.raw import LogBatch, MapColumn, NestedMap, SpanBatch, StrList
from clawtrace.receiver.attribution.attribute import Claim, ClaimReader
from clawtrace.receiver.decode.columns import replace_surrogates, whole_characters
from clawtrace.receiver.decode.json_fields import (
    JsonAttributes,
    an_id,
    enumerated,
    get,
    hexadecimal,
    objects,
    one_object,
    severity,
    text,
    unsigned,
)
from clawtrace.receiver.decode.values import NO_SPAN, NO_TRACE, SPAN_KINDS, STATUS_CODES, span_id_problem
from clawtrace.receiver.redaction.redact import Redactor
from clawtrace.receiver.request import BadItemError, BadPayloadError, Decoded, Signal

if TYPE_CHECKING:
    from clawtrace.receiver.decode.regular_json import RegularSpans

__all__ = ["JsonDecoder"]

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_GROUPS: dict[Signal, tuple[str, str, str]] = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
    "metrics": ("resourceMetrics", "scopeMetrics", "metrics"),
}
_OLD_SCOPES: dict[Signal, str] = {
    "traces": "instrumentationLibrarySpans",
    "logs": "instrumentationLibraryLogs",
    "metrics": "instrumentationLibraryMetrics",
}
"""What scopes were called until OTLP 0.19; they count where the new ones are absent (opentelemetry-proto 0.15)."""
_OLD_RECORDS = "logs"
"""What `logRecords` were called until OTLP 0.12."""
_METRIC_DATA = ("gauge", "sum", "histogram", "exponentialHistogram", "summary")

_Attributes = tuple[dict[str, str], str]
"""Values by key, type letters in the same order."""


class JsonDecoder:
    """Decodes requests; holds no state of a request."""

    def __init__(self, redactor: Redactor, claims: ClaimReader) -> None:
        self._redactor = redactor
        self._claims = claims
        self._any = JsonAttributes(redactor.clean_bytes)

    def regular_spans(self, bodies: Sequence[bytes], *, suspect: bool) -> list[Decoded | BadPayloadError]:
        """Decode requests of spans together; a `BadPayloadError` takes the place of one that is not written as exporters do.

        It is to be parsed and decoded. All rows are in one batch.
        """
        return self._regular.decode(bodies, suspect=suspect)

    def parse(self, data: bytes) -> Any:
        """Parse the text of one request: UTF-8, invalid bytes replaced.

        Raises:
            BadPayloadError: it is no JSON.
        """
        try:
            return json.loads(str(data, "utf-8-sig", "replace"))
        except RecursionError:
            raise BadPayloadError("the JSON body is nested too deeply") from None
        except ValueError as error:
            raise BadPayloadError(f"the body is not JSON: {error}") from None

    def decode(self, signal: Signal, document: Any, data: bytes, *, suspect: bool) -> Decoded:
        """Decode one request.

        Args:
            suspect: whether it may contain a secret; resources are cleaned here, the rest by the caller.

        Raises:
            BadPayloadError: it is not shaped like a request.
        """
        if not isinstance(document, dict):
            raise BadPayloadError("the JSON body is not an object")
        decoded = Decoded()
        try:
            for group in objects(document, _GROUPS[signal][0]):
                self._group(signal, group, decoded, suspect)
        except BadItemError as problem:
            raise BadPayloadError(f"the JSON body is not an OTLP {signal} request: {problem}") from None
        if _SURROGATE.search(data):
            replace_surrogates(decoded.spans if signal == "traces" else decoded.logs)
        return decoded

    def _group(self, signal: Signal, group: dict[str, Any], decoded: Decoded, suspect: bool) -> None:
        scopes = _scopes(signal, group)
        try:
            resource, claim = self._resource(group, suspect)
        except BadItemError as problem:
            decoded.rejected[Claim(), f"resource: {problem}"] += sum(len(_items(signal, scope)) for scope in scopes)
            return
        for scope in scopes:
            about = one_object(scope, "scope") or one_object(scope, "instrumentationLibrary")
            shared = (resource, text(about, "name"), text(about, "version"))
            for item in _items(signal, scope):
                if signal == "metrics":
                    decoded.points[claim] += _points(item)
                    continue
                try:
                    row = self._span(item, claim, decoded) if signal == "traces" else self._log(item, claim, decoded)
                except BadItemError as problem:
                    decoded.rejected[claim, str(problem)] += 1
                    continue
                _share(row, *shared)
                if isinstance(row, LogBatch):
                    row.resource_schema.append(text(group, "schemaUrl"))
                    row.scope_schema.append(text(scope, "schemaUrl"))
                    _add_map(row.scope_attributes, self._scope_attributes(about))

    def _scope_attributes(self, scope: dict[str, Any]) -> dict[str, str]:
        """Return the attributes of a scope; such as cannot be read are left out, as they say nothing about an item."""
        try:
            return self._attributes(scope)[0]
        except BadItemError:
            return {}

    def _resource(self, group: dict[str, Any], suspect: bool) -> tuple[_Attributes, Claim]:
        values, letters = self._attributes(one_object(group, "resource"))
        claim = self._claims.of_resource(_whole(values))
        if suspect:
            values = {key: self._redactor.clean(value) for key, value in values.items()}
        return (values, letters), claim

    def _claim(self, base: Claim, attributes: dict[str, str], links: tuple[str, ...] = ()) -> Claim:
        if links or not self._claims.keys.isdisjoint(attributes):
            return self._claims.of_item(base, _whole(attributes), links)
        return base

    # -- items -----------------------------------------------------------------------------------------------------

    def _span(self, span: dict[str, Any], base: Claim, decoded: Decoded) -> SpanBatch:
        """Append one span; everything that may be wrong with it is found before the first column grows."""
        cells = _span_cells(span)
        values, cells["attribute_types"] = self._attributes(span)
        events = [
            (unsigned(event, "timeUnixNano"), text(event, "name"), self._attributes(event)[0])
            for event in objects(span, "events")
        ]
        links = [
            (
                hexadecimal(link, "traceId"),
                hexadecimal(link, "spanId"),
                text(link, "traceState"),
                self._attributes(link)[0],
            )
            for link in objects(span, "links")
        ]
        batch = decoded.spans
        _add_cells(batch, cells)
        _add_map(batch.attributes, values)
        _add_list(batch.event_times, [event[0] for event in events])
        _add_list(batch.event_names, [event[1] for event in events])
        _add_nested(batch.event_attributes, [event[2] for event in events])
        _add_list(batch.link_trace_ids, [link[0] for link in links])
        _add_list(batch.link_span_ids, [link[1] for link in links])
        _add_list(batch.link_states, [link[2] for link in links])
        _add_nested(batch.link_attributes, [link[3] for link in links])
        decoded.claims.append(self._claim(base, values, tuple(link[0] for link in links)))
        return batch

    def _log(self, record: dict[str, Any], base: Claim, decoded: Decoded) -> LogBatch:
        """Append one log record, as `_span` does."""
        cells = _log_cells(record)
        values, cells["attribute_types"] = self._attributes(record)
        cells["body"] = self._any.value(get(record, "body"))[0]
        batch = decoded.logs
        _add_cells(batch, cells)
        _add_map(batch.attributes, values)
        decoded.claims.append(self._claim(base, values))
        return batch

    # -- attributes ------------------------------------------------------------------------------------------------

    def _attributes(self, node: dict[str, Any]) -> _Attributes:
        rows = {pair[0]: pair for pair in map(self._any.row, objects(node, "attributes"))}
        return {key: value for key, value, _ in rows.values()}, "".join([letter for _, _, letter in rows.values()])

    @cached_property
    def _regular(self) -> RegularSpans:
        from clawtrace.receiver.decode.regular_json import RegularSpans

        return RegularSpans(self._any, self._redactor, self._claims)


def _scopes(signal: Signal, group: dict[str, Any]) -> list[dict[str, Any]]:
    return objects(group, _GROUPS[signal][1]) or objects(group, _OLD_SCOPES[signal])


def _items(signal: Signal, scope: dict[str, Any]) -> list[dict[str, Any]]:
    return objects(scope, _GROUPS[signal][2]) or (objects(scope, _OLD_RECORDS) if signal == "logs" else [])


def _whole(values: dict[str, str]) -> dict[str, str]:
    """Return what names a run, in valid Unicode: the columns are made so when all of them are there."""
    return {key: whole_characters(value) for key, value in values.items()}


def _points(metric: dict[str, Any]) -> int:
    return sum(len(objects(one_object(metric, which), "dataPoints")) for which in _METRIC_DATA)


def _add_map(column: MapColumn, values: dict[str, str]) -> None:
    column.keys += values
    column.values += values.values()
    column.offsets.append(len(column.keys))


def _add_list(column: StrList, values: list[Any]) -> None:
    column.values += values
    column.offsets.append(len(column.values))


def _add_nested(column: NestedMap, maps: list[dict[str, str]]) -> None:
    for values in maps:
        _add_map(column.maps, values)
    column.offsets.append(len(column.maps.offsets) - 1)


def _add_cells(batch: SpanBatch | LogBatch, cells: dict[str, Any]) -> None:
    for name, cell in cells.items():
        getattr(batch, name).append(cell)


def _span_cells(span: dict[str, Any]) -> dict[str, Any]:
    """Return the plain columns of one span."""
    trace_id, span_id, parent = (hexadecimal(span, name) for name in ("traceId", "spanId", "parentSpanId"))
    problem = span_id_problem(trace_id, span_id, parent)
    if problem:
        raise BadItemError(problem)
    status = one_object(span, "status")
    return {
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_span_id": "" if parent == NO_SPAN else parent,
        "trace_state": text(span, "traceState"),
        "name": text(span, "name"),
        "kind": enumerated(span, "kind", "SPAN_KIND_", SPAN_KINDS),
        "start_ns": unsigned(span, "startTimeUnixNano"),
        "end_ns": unsigned(span, "endTimeUnixNano"),
        "status_code": enumerated(status, "code", "STATUS_CODE_", STATUS_CODES),
        "status_message": text(status, "message"),
        "flags": unsigned(span, "flags", 32),
        "dropped_attributes": unsigned(span, "droppedAttributesCount", 32),
        "dropped_events": unsigned(span, "droppedEventsCount", 32),
        "dropped_links": unsigned(span, "droppedLinksCount", 32),
    }


def _log_cells(record: dict[str, Any]) -> dict[str, Any]:
    """Return the plain columns of one log record."""
    observed = unsigned(record, "observedTimeUnixNano")
    return {
        "time_ns": unsigned(record, "timeUnixNano") or observed,
        "observed_ns": observed,
        "trace_id": an_id(record, "traceId", NO_TRACE),
        "span_id": an_id(record, "spanId", NO_SPAN),
        "flags": unsigned(record, "flags", 32),
        "severity_text": text(record, "severityText"),
        "severity_number": severity(record),
        "event_name": text(record, "eventName"),
        "dropped_attributes": unsigned(record, "droppedAttributesCount", 32),
    }


def _share(batch: SpanBatch | LogBatch, resource: _Attributes, scope: str, version: str) -> None:
    """Append what the last item shares with all of its scope."""
    values, letters = resource
    _add_map(batch.resource, values)
    batch.service.append(values.get("service.name", ""))
    batch.scope.append(scope)
    batch.scope_version.append(version)
    if isinstance(batch, SpanBatch):
        batch.resource_types.append(letters)

"""Python columns into Arrow, without pyarrow: nanoarrow costs a tenth of its start-up time.

DuckDB reads anything with ``__arrow_c_stream__``; a stream can be taken once, so `ArrowTable` makes a
new one each time it is asked.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import nanoarrow as na
from nanoarrow.c_array import ArrayFromIterableBuilder

from clawtrace.model.raw import LogBatch, MapColumn, NestedMap, SpanBatch, StrList

__all__ = ["ArrowRows", "ArrowTable", "logs_table", "rows_table", "spans_table"]

# Types are made once: making them anew for every column took half of the time of a small commit.
_STRING, _INT64, _UINT64, _FLOAT64, _BOOL = (
    na.c_schema(made) for made in (na.string(), na.int64(), na.uint64(), na.float64(), na.bool_())
)
_MAP = na.c_schema(na.map_(na.string(), na.string()))
_PAIR = na.c_schema(na.struct({"key": na.Schema(na.Type.STRING, nullable=False), "value": na.string()}))
_TIME = na.c_schema(na.timestamp("ns"))
_STRINGS, _TIMES, _MAPS = (na.c_schema(na.list_(item)) for item in (na.string(), na.timestamp("ns"), na.Schema(_MAP)))


class ArrowTable:
    """One record batch under the Arrow PyCapsule interface; can be scanned any number of times."""

    def __init__(self, columns: Mapping[str, Any], length: int) -> None:
        schema = na.struct({name: array.schema for name, array in columns.items()})
        self._array = na.c_array_from_buffers(schema, length, [None], children=list(columns.values()))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return na.c_array_stream(self._array).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._array.schema.__arrow_c_schema__()


class ArrowRows:
    """What DuckDB's SELECT finds on one connection, to be read once by another one."""

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


def _text(values: Sequence[Any]) -> Any:
    return _array(values, _STRING)


def _array(values: Sequence[Any], of_type: Any) -> Any:
    """Build an array. nanoarrow's builder refers to itself, so that without a hand only the collector would free the values."""
    builder = ArrayFromIterableBuilder(of_type)
    try:
        return builder.build_c_array(values)
    finally:
        vars(builder).clear()


def _int(values: Sequence[int | None]) -> Any:
    try:
        numbers = array("q", values)  # type: ignore[type-var]
    except TypeError:  # some are None: nanoarrow looks at each, which takes twice as long
        return _array(values, _INT64)
    return na.c_array_from_buffers(_INT64, len(numbers), [None, numbers])


def _uint(values: Sequence[int]) -> Any:
    return na.c_array_from_buffers(_UINT64, len(values), [None, array("Q", values)])


def _map(column: MapColumn) -> Any:
    pairs = na.c_array_from_buffers(
        _PAIR,
        len(column.keys),
        [None],
        children=[_text(column.keys), _text(column.values)],
    )
    return na.c_array_from_buffers(_MAP, len(column.offsets) - 1, [None, array("i", column.offsets)], children=[pairs])


def _list(list_type: Any, offsets: list[int], item: Any) -> Any:
    return na.c_array_from_buffers(list_type, len(offsets) - 1, [None, array("i", offsets)], children=[item])


def _texts(column: StrList) -> Any:
    return _list(_STRINGS, column.offsets, _text(column.values))


def _times(column: StrList) -> Any:
    # DuckDB keeps the largest 64-bit value for infinity: a time beyond 2262 saturates just below it.
    values = array("q", (min(int(value), 2**63 - 2) for value in column.values))
    return _list(_TIMES, column.offsets, na.c_array_from_buffers(_TIME, len(values), [None, values]))


def _maps(column: NestedMap) -> Any:
    return _list(_MAPS, column.offsets, _map(column.maps))


def _of_both(batch: SpanBatch | LogBatch) -> dict[str, Any]:
    """Return the columns that both tables have."""
    return {
        "TraceId": _text(batch.trace_id),
        "SpanId": _text(batch.span_id),
        "ServiceName": _text(batch.service),
        "ResourceAttributes": _map(batch.resource),
        "ScopeName": _text(batch.scope),
        "ScopeVersion": _text(batch.scope_version),
        "attribute_types": _text(batch.attribute_types),
        "dropped_attributes": _int(batch.dropped_attributes),
        "arrival_ns": _int(batch.arrival_ns),
        "request_no": _int(batch.request_no),
        "protocol": _text(batch.protocol),
        "run_no": _int(batch.run_no),
        "run_rule": _text(batch.run_rule),
    }


def spans_table(batch: SpanBatch) -> ArrowTable:
    """Return `batch` with the column names of ``otel_traces`` (``store/sql/otel_traces.sql``)."""
    columns = _of_both(batch) | {
        "ParentSpanId": _text(batch.parent_span_id),
        "TraceState": _text(batch.trace_state),
        "SpanName": _text(batch.name),
        "SpanKind": _text(batch.kind),
        "SpanAttributes": _map(batch.attributes),
        "StatusCode": _text(batch.status_code),
        "StatusMessage": _text(batch.status_message),
        "Events.Timestamp": _times(batch.event_times),
        "Events.Name": _texts(batch.event_names),
        "Events.Attributes": _maps(batch.event_attributes),
        "Links.TraceId": _texts(batch.link_trace_ids),
        "Links.SpanId": _texts(batch.link_span_ids),
        "Links.TraceState": _texts(batch.link_states),
        "Links.Attributes": _maps(batch.link_attributes),
        "start_ns": _uint(batch.start_ns),
        "end_ns": _uint(batch.end_ns),
        "flags": _int(batch.flags),
        "dropped_events": _int(batch.dropped_events),
        "dropped_links": _int(batch.dropped_links),
        "resource_types": _text(batch.resource_types),
        "scope_attributes": _map(batch.scope_attributes),
    }
    return ArrowTable(columns, len(batch))


def logs_table(batch: LogBatch) -> ArrowTable:
    """Return `batch` with the column names of ``otel_logs`` (``store/sql/otel_logs.sql``)."""
    columns = _of_both(batch) | {
        "TraceFlags": _int(batch.flags),
        "SeverityText": _text(batch.severity_text),
        "SeverityNumber": _int(batch.severity_number),
        "Body": _text(batch.body),
        "ResourceSchemaUrl": _text(batch.resource_schema),
        "ScopeSchemaUrl": _text(batch.scope_schema),
        "ScopeAttributes": _map(batch.scope_attributes),
        "LogAttributes": _map(batch.attributes),
        "EventName": _text(batch.event_name),
        "time_ns": _uint(batch.time_ns),
        "observed_ns": _uint(batch.observed_ns),
    }
    return ArrowTable(columns, len(batch))


_BUILDERS: dict[str, Any] = {
    "text": _text,
    "bigint": _int,
    "double": lambda values: _array(values, _FLOAT64),
    "boolean": lambda values: _array(values, _BOOL),
}


def rows_table(columns: Mapping[str, tuple[str, Sequence[Any]]]) -> ArrowTable:
    """Return a table from ``name -> (type, values)``; types are those of `clawtrace.model.relations`.

    None is NULL. Every column has the same length, and there is at least one column.
    """
    length = len(next(iter(columns.values()))[1])
    return ArrowTable({name: _BUILDERS[kind](values) for name, (kind, values) in columns.items()}, length)

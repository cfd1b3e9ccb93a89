"""The Collector's rows as requests of OTLP JSON: they then go the way of every recording, redaction and attribution included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from clawtrace.store.clickhouse.connection import ServerSession
from clawtrace.store.clickhouse.picking import Picked
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.export import otlp_request

__all__ = ["UNKNOWN", "forget_unknown", "requests"]

_ROWS_A_REQUEST = 1_000

_SPANS = """
SELECT TraceId, SpanId, ParentSpanId, TraceState, SpanName, SpanKind, SpanAttributes, '',
       toUnixTimestamp64Nano(Timestamp) AS start_ns,
       reinterpretAsUInt64(toUnixTimestamp64Nano(Timestamp)) + Duration AS end_ns, StatusCode, StatusMessage,
       arrayMap(t -> toUnixTimestamp64Nano(t), Events.Timestamp), Events.Name, Events.Attributes,
       Links.TraceId, Links.SpanId, Links.TraceState, Links.Attributes, 0, 0, 0, 0,
       ResourceAttributes, '', ScopeName, ScopeVersion, ''
FROM {table} WHERE {condition}
"""
"""The columns of `clawtrace.store.export`. A duration is the end less the start, modulo 2^64: an end of 0 comes back as 0."""

_LOGS = """
SELECT TraceId, SpanId, TraceFlags, SeverityText, SeverityNumber, Body, {event_name}, LogAttributes, '',
       toUnixTimestamp64Nano(Timestamp), toUnixTimestamp64Nano(Timestamp), 0, ResourceAttributes, '', ScopeName, ScopeVersion,
       ScopeAttributes
FROM {table} WHERE {condition}
"""

UNKNOWN = {
    "otel_traces": (
        "flags",
        "dropped_attributes",
        "dropped_events",
        "dropped_links",
        "attribute_types",
        "resource_types",
        "scope_attributes",
    ),
    "otel_logs": ("observed_ns", "dropped_attributes", "attribute_types"),
}
"""Columns of ours that the exporter does not write (the URLs of schemas are not read either)."""


def requests(
    connection: ServerSession, picked: Picked, keys: tuple[str, ...]
) -> Iterator[tuple[Literal["traces", "logs"], int, str]]:
    """Yield the picked rows: which signal, how many, and the request that holds them."""
    address = connection.address
    table = f"`{address.database}`.`{address.traces}`"
    for rows in _chunks(connection, _SPANS.format(table=table, condition=picked.of_spans)):
        yield "traces", len(rows), otlp_request(rows, "Spans")
    if picked.has_logs:
        table = f"`{address.database}`.`{address.logs}`"
        columns = {row[0] for row in connection.rows(f"DESCRIBE TABLE {table}")[1]}
        names = ", ".join(
            f"{column}['{key}']" for key in map(_escaped, keys) for column in ("ResourceAttributes", "LogAttributes")
        )
        sql = _LOGS.format(
            table=table,
            condition=picked.of_logs(f"[{names}]"),
            event_name="EventName" if "EventName" in columns else "''",  # since v0.128 of the exporter
        )
        for rows in _chunks(connection, sql):
            yield "logs", len(rows), otlp_request(rows, "Logs")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _chunks(connection: ServerSession, sql: str) -> Iterator[list[tuple[object, ...]]]:
    for block in connection.blocks(sql):
        rows = list(map(tuple, block))
        for start in range(0, len(rows), _ROWS_A_REQUEST):
            yield rows[start : start + _ROWS_A_REQUEST]


def forget_unknown(store: DuckStore) -> None:
    """Make unknown in the raw rows of a store what the exporter did not write: a request of OTLP has values for it."""
    with store.transaction() as db:
        for table, columns in UNKNOWN.items():
            db.execute(f"UPDATE {table} SET {', '.join(f'{column} = NULL' for column in columns)}")

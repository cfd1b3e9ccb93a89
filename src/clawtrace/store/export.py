"""The raw rows of a run as OTLP JSON, one request a line, which `--traces` reads again; and as Parquet files, one for spans and one for log records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from clawtrace.errors import InputError
from clawtrace.store.arrow import ArrowRows
from clawtrace.store.duckdb import DuckStore
from clawtrace.support.otlp_json import any_value, request

__all__ = ["LOG_COLUMNS", "SPAN_COLUMNS", "export_run", "otlp_request", "read_parquet", "write_parquet"]

SPAN_COLUMNS = """
"TraceId", "SpanId", "ParentSpanId", "TraceState", "SpanName", "SpanKind", "SpanAttributes", attribute_types,
start_ns, end_ns, "StatusCode", "StatusMessage", list_transform("Events.Timestamp", lambda t: epoch_ns(t)), "Events.Name",
"Events.Attributes", "Links.TraceId", "Links.SpanId", "Links.TraceState", "Links.Attributes", flags,
dropped_attributes, dropped_events, dropped_links, "ResourceAttributes", resource_types, "ScopeName", "ScopeVersion",
scope_attributes
"""
LOG_COLUMNS = """
"TraceId", "SpanId", "TraceFlags", "SeverityText", "SeverityNumber", "Body", "EventName", "LogAttributes",
attribute_types, time_ns, observed_ns, dropped_attributes, "ResourceAttributes", '', "ScopeName", "ScopeVersion",
"ScopeAttributes"
"""
_SPANS = 'FROM otel_traces WHERE {} ORDER BY arrival_ns, request_no, start_ns, "SpanId"'
_LOGS = 'FROM otel_logs WHERE {} ORDER BY arrival_ns, request_no, time_ns, "SpanId"'
_SIGNALS: tuple[tuple[str, str, Literal["Spans", "Logs"]], ...] = (
    (SPAN_COLUMNS, _SPANS, "Spans"),
    (LOG_COLUMNS, _LOGS, "Logs"),
)
_THESE = "rowid IN (SELECT unnest(string_split($rows, ',')::BIGINT[]))"
"""Rows by number: what is left out by OFFSET is read again for each line, which took minutes for 200,000 spans."""
_ROWS_A_LINE = 500
_KINDS = {"Internal": 1, "Server": 2, "Client": 3, "Producer": 4, "Consumer": 5}
_CODES = {"Ok": 1, "Error": 2}
_AS_JSON: Mapping[str, Callable[[str], Any]] = {
    "i": int, "d": float, "b": "true".__eq__, "a": json.loads, "m": json.loads, "n": lambda _: None
}  # fmt: skip
"""Functions that parse a value of each type but text and bytes."""


def export_run(store: DuckStore, run_id: str) -> Iterator[str]:
    """Yield the spans and log records of a run, as they were received and redacted, as lines of OTLP JSON.

    Types that are not stored (of attributes of events, links and scopes, and of resources of log records) become texts.
    """
    number = store.run_no(run_id)
    for columns, ordered, kind in _SIGNALS:
        found = store.script(f"SELECT rowid {ordered.format('run_no = $run_no')}", {"run_no": number})
        for start in range(0, len(found), _ROWS_A_LINE):
            rows = ",".join(str(row) for (row,) in found[start : start + _ROWS_A_LINE])
            yield otlp_request(store.script(f"SELECT {columns} {ordered.format(_THESE)}", {"rows": rows}), kind)


def otlp_request(rows: Sequence[Sequence[Any]], kind: Literal["Spans", "Logs"]) -> str:
    """Return one request of OTLP JSON, its items under their resource and scope.

    Args:
        rows: with the columns `SPAN_COLUMNS` or `LOG_COLUMNS`, in their order.
    """
    read = _span if kind == "Spans" else _log
    return json.dumps(request(kind, ((*_origin(row), read(row)) for row in rows)), ensure_ascii=False)


def _origin(row: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the attributes of the resource of a row, and its scope."""
    attributes, letters, name, version, more = row[-5:]
    return _attributes(attributes, letters), {"name": name, "version": version, "attributes": _attributes(more, "")}


def _span(row: Sequence[Any]) -> dict[str, Any]:
    (trace, span, parent, state, name, kind, attributes, letters, start, end, code, message, *rest) = row
    times, names, of_events, traces, spans, states, of_links, flags, cut, cut_events, cut_links, *_ = rest
    events = zip(times or (), names or (), of_events or (), strict=True)
    links = zip(traces or (), spans or (), states or (), of_links or (), strict=True)
    return {
        "traceId": trace,
        "spanId": span,
        "parentSpanId": parent or "",
        "traceState": state or "",
        "name": name,
        "kind": _KINDS.get(kind, 0),
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": _attributes(attributes, letters),
        "status": {"code": _CODES.get(code, 0), "message": message or ""},
        "events": [
            {"timeUnixNano": str(at), "name": event, "attributes": _attributes(more, "")} for at, event, more in events
        ],
        "links": [
            {"traceId": to, "spanId": of, "traceState": given, "attributes": _attributes(more, "")}
            for to, of, given, more in links
        ],
        "flags": flags or 0,
        "droppedAttributesCount": cut or 0,
        "droppedEventsCount": cut_events or 0,
        "droppedLinksCount": cut_links or 0,
    }


def _log(row: Sequence[Any]) -> dict[str, Any]:
    trace, span, flags, severity, level, body, event, attributes, letters, at, observed, cut, *_ = row
    return {
        "timeUnixNano": str(at),
        "observedTimeUnixNano": str(observed or 0),
        "severityNumber": level or 0,
        "severityText": severity or "",
        "eventName": event or "",
        "body": {"stringValue": body or ""},
        "attributes": _attributes(attributes, letters),
        "droppedAttributesCount": cut or 0,
        "flags": flags or 0,
        "traceId": trace or "",
        "spanId": span or "",
    }


def _attributes(values: Mapping[str, str] | None, letters: str | None) -> list[dict[str, Any]]:
    """Return attributes as OTLP has them; `letters` holds the type of each, and is empty where all are texts."""
    if not values:
        return []
    kinds = letters if letters and len(letters) == len(values) else "s" * len(values)
    return [{"key": key, "value": _value(text, kind)} for (key, text), kind in zip(values.items(), kinds, strict=True)]


def _value(text: str, kind: str) -> dict[str, Any]:
    return {"bytesValue": text} if kind == "y" else any_value(_AS_JSON.get(kind, str)(text))


_FILES = {"otel_traces": "traces.parquet", "otel_logs": "logs.parquet"}
_RECEIVED = "arrival_ns, request_no, protocol, run_no, run_rule"
"""Columns on the way that rows came by; an exported run has its id instead."""
_ROWS_A_REQUEST = 500


def write_parquet(store: DuckStore, run_id: str, folder: Path) -> list[Path]:
    """Write a run into a folder, the columns of the Collector's exporter first; return the files that were written.

    Raises:
        InputError: a file cannot be written.
    """
    from clawtrace.support.parquet_table import memory_database

    written = []
    named = run_id.replace("'", "''")
    with memory_database() as engine:
        for table, name in _FILES.items():
            path = folder / name
            if not store.script(f"SELECT 1 FROM {table} LIMIT 1"):
                path.unlink(missing_ok=True)  # of an earlier export
                continue

            def copy(rows: Any, path: Path = path) -> None:
                engine.register("exported", ArrowRows(rows))
                engine.execute("COPY exported TO ? (FORMAT parquet, COMPRESSION zstd)", [str(path)])

            try:
                folder.mkdir(parents=True, exist_ok=True)
                store.stream(f"SELECT * EXCLUDE ({_RECEIVED}), '{named}' AS run_id FROM {table}", copy)
            except OSError as error:
                raise InputError(f"{str(folder)!r} cannot be written: {error.strerror or error}") from error
            written.append(path)
    return written


def read_parquet(path: Path) -> Iterator[tuple[Literal["traces", "logs", "rows"], str]]:
    """Yield the rows of a file: which signal, and a request that holds some of them, where `write_parquet` wrote it.

    Else they are `rows`, a list of JSON objects, for the reader of the tool that wrote the file.

    Raises:
        InputError: it is damaged, or lacks a column.
    """
    import duckdb

    from clawtrace.support.parquet_table import memory_database

    with memory_database() as engine:
        try:
            engine.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)])
            columns = {row[0] for row in engine.fetchall()}
            if columns.isdisjoint(("SpanAttributes", "LogAttributes")):
                rows = engine.execute("SELECT to_json(row) FROM read_parquet(?) AS row", [str(path)])
                while chunk := rows.fetchmany(_ROWS_A_REQUEST):
                    yield "rows", f"[{','.join(row for (row,) in chunk)}]"
                return
            logs = "LogAttributes" in columns
            kept = LOG_COLUMNS if logs else SPAN_COLUMNS
            rows = engine.execute(f"SELECT {kept} FROM read_parquet(?)", [str(path)])
            while chunk := rows.fetchmany(_ROWS_A_REQUEST):
                yield ("logs" if logs else "traces"), otlp_request(chunk, "Logs" if logs else "Spans")
        except duckdb.Error as error:
            said = str(error).partition("\n")[0]
            raise InputError(
                f"`{path}` is no Parquet file as `clawtrace runs export --format parquet` writes it: {said}"
            ) from error

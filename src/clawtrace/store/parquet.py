"""Raw rows as Parquet files, one for spans and one for log records, and back as requests of OTLP JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from clawtrace.errors import InputError
from clawtrace.store.arrow import ArrowRows
from clawtrace.store.export import LOG_COLUMNS, SPAN_COLUMNS, otlp_request

if TYPE_CHECKING:
    from clawtrace.store.duckdb import DuckStore

__all__ = ["read_parquet", "write_parquet"]

_FILES = {"otel_traces": "traces.parquet", "otel_logs": "logs.parquet"}
_RECEIVED = "arrival_ns, request_no, protocol, run_no, run_rule"
"""Columns on the way that rows came by; an exported run has its id instead."""
_ROWS_A_REQUEST = 500


def write_parquet(store: DuckStore, run_id: str, folder: Path) -> list[Path]:
    """Write a run into a folder, the columns of the Collector's exporter first; return the files that were written.

    Raises:
        InputError: a file cannot be written.
    """
    import duckdb

    written = []
    named = run_id.replace("'", "''")
    with duckdb.connect() as engine:
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

    with duckdb.connect() as engine:
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
            if "scope_attributes" not in columns:  # written before they were kept
                kept = kept.replace("scope_attributes", "NULL")
            rows = engine.execute(f"SELECT {kept} FROM read_parquet(?)", [str(path)])
            while chunk := rows.fetchmany(_ROWS_A_REQUEST):
                yield ("logs" if logs else "traces"), otlp_request(chunk, "Logs" if logs else "Spans")
        except duckdb.Error as error:
            said = str(error).partition("\n")[0]
            raise InputError(
                f"`{path}` is no Parquet file as `clawtrace runs export --format parquet` writes it: {said}"
            ) from error

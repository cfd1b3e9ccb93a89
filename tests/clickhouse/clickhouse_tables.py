"""A ClickHouse server for tests, and rows in it as the Collector's ClickHouse exporter writes them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from clawtrace.receiver.recordings.recording import Grouping, load_recordings
from clawtrace.receiver.redaction.redact import RedactionSettings
from clawtrace.store.clickhouse.address import ClickHouseAddress
from clawtrace.store.clickhouse.connection import ServerSession
from clawtrace.store.duckdb import DuckStore

SERVER = Path(__file__).with_name("clickhouse_server.py")
TABLES = Path(__file__).with_name("otel_tables.sql").read_text(encoding="utf-8")
COLUMNS = {
    "otel_traces": (
        'make_timestamp_ns(start_ns::BIGINT) AS "Timestamp", "TraceId", "SpanId", "ParentSpanId", "TraceState", "SpanName", '
        '"SpanKind", "ServiceName", "ResourceAttributes", "ScopeName", "ScopeVersion", "SpanAttributes", '
        '((end_ns::HUGEINT - start_ns::HUGEINT + 18446744073709551616) % 18446744073709551616)::UBIGINT AS "Duration", '
        '"StatusCode", "StatusMessage", "Events.Timestamp", "Events.Name", "Events.Attributes", "Links.TraceId", '
        '"Links.SpanId", "Links.TraceState", "Links.Attributes"'
    ),
    "otel_logs": (
        'make_timestamp_ns(time_ns::BIGINT) AS "Timestamp", "TraceId", "SpanId", "TraceFlags"::UTINYINT AS "TraceFlags", '
        '"SeverityText", "SeverityNumber"::UTINYINT AS "SeverityNumber", "ServiceName", "Body", "ResourceSchemaUrl", '
        '"ResourceAttributes", "ScopeSchemaUrl", "ScopeName", "ScopeVersion", "ScopeAttributes", "LogAttributes", "EventName"'
    ),
}
"""What the exporter writes, from the raw rows of our store, which has the same columns."""


class ClickHouseServer:
    """A server, and its databases."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), str(folder), str(port)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def url(self, database: str = "otel", *, user: str = "", options: str = "") -> str:
        """Return the URL of a database as `--store` takes it."""
        return f"clickhouse://{user and user + '@'}127.0.0.1:{self.port}/{database}{options and '?' + options}"

    def address(self, database: str = "otel", **more: str) -> ClickHouseAddress:
        """Return the address of a database."""
        return ClickHouseAddress.parse(self.url(database, **more), {})

    def run(self, *statements: str, database: str = "default") -> None:
        """Run statements."""
        connection = ServerSession(self.address(database))
        for sql in statements:
            connection.run(sql)
        connection.close()

    def rows(self, sql: str, database: str = "otel") -> list[tuple[object, ...]]:
        """Return the rows of a query."""
        connection = ServerSession(self.address(database))
        try:
            return connection.rows(sql)[1]
        finally:
            connection.close()

    def make_tables(self, database: str = "otel") -> None:
        """Make the Collector's tables, empty."""
        self.run(f"DROP DATABASE IF EXISTS {database}", f"CREATE DATABASE {database}")
        self.run(*filter(str.strip, TABLES.split(";\n")), database=database)

    def write(self, recordings: Sequence[Path], database: str = "otel") -> None:
        """Write recordings as the exporter does, secrets included."""
        store = DuckStore()
        load_recordings(recordings, Grouping(), store, redaction=RedactionSettings(enabled=False))
        connection = ServerSession(self.address(database))
        for table, columns in COLUMNS.items():
            store.stream(f"SELECT {columns} FROM {table}", lambda rows, into=table: connection.insert_arrow(into, rows))
        connection.close()
        store.close()

    def stop(self, *, kill: bool = False) -> None:
        """End the server."""
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

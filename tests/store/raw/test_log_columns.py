"""Log records lie in the columns of the Collector's ClickHouse exporter, in its order (span-model.md §4)."""

from __future__ import annotations

from contextlib import closing

import duckdb

from clawtrace.model.query import Query
from clawtrace.model.raw import LogBatch, MapColumn, SpanBatch
from clawtrace.store.duckdb import DuckStore

EXPORTER = [
    "Timestamp", "TimestampTime", "TraceId", "SpanId", "TraceFlags", "SeverityText", "SeverityNumber", "ServiceName", "Body",
    "ResourceSchemaUrl", "ResourceAttributes", "ScopeSchemaUrl", "ScopeName", "ScopeVersion", "ScopeAttributes",
    "LogAttributes", "EventName",
]  # fmt: skip
"""`clickhouseexporter` of opentelemetry-collector-contrib v0.140, `internal/sqltemplates/logs_table.sql`."""

ROW = """SELECT "TimestampTime"::VARCHAR AS second, "Body" AS body, "ResourceSchemaUrl" AS resource_schema,
    "ScopeSchemaUrl" AS scope_schema, "ScopeAttributes"['k'] AS k, "EventName" AS event FROM otel_logs"""


def one_record(run_no: int) -> LogBatch:
    batch = LogBatch()
    for name, column in vars(batch).items():
        if isinstance(column, list):
            setattr(batch, name, [name])
        elif isinstance(column, MapColumn):
            setattr(batch, name, MapColumn([0, 1], ["k"], [name]))
    for name in ("flags", "severity_number", "dropped_attributes", "arrival_ns", "request_no", "observed_ns"):
        setattr(batch, name, [7])
    batch.time_ns, batch.run_no = [1_700_000_000_123_456_789], [run_no]
    return batch


def columns(path) -> list[str]:
    with duckdb.connect(str(path), read_only=True) as db:
        sql = "SELECT column_name FROM duckdb_columns() WHERE table_name = 'otel_logs' ORDER BY column_index"
        return [row[0] for row in db.execute(sql).fetchall()]


def test_the_exporters_columns_come_first_in_its_order(tmp_path):
    """Each with what was sent; the whole second is the exporter's partition."""
    with closing(DuckStore(tmp_path / "s.duckdb")) as store:
        store.commit(SpanBatch(), one_record(store.run_no("r")), [], [])
        (row,) = store.ask(Query(ROW)).rows

    assert columns(tmp_path / "s.duckdb")[: len(EXPORTER)] == EXPORTER
    assert row == ("2023-11-14 22:13:20", "body", "resource_schema", "scope_schema", "scope_attributes", "event_name")

"""Log records lie in the columns of the Collector's ClickHouse exporter, in its order (span-model.md §4)."""

from __future__ import annotations

import json
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


def test_a_store_of_before_gets_them_and_keeps_its_rows(tmp_path):
    """What was not kept then is unknown; what comes now is whole."""
    path = tmp_path / "s.duckdb"
    with closing(DuckStore(path)) as store:
        store.commit(SpanBatch(), one_record(store.run_no("r")), [], [])
        store.ask(Query(ROW))
    with duckdb.connect(str(path)) as db:
        gone = ("TimestampTime", "ResourceSchemaUrl", "ScopeSchemaUrl", "ScopeAttributes")
        dropped = ", ".join(f'"{name}"' for name in gone)
        db.execute(f"CREATE TABLE old AS SELECT * EXCLUDE ({dropped}) FROM otel_logs; DROP TABLE otel_logs")
        db.execute("ALTER TABLE old RENAME TO otel_logs")
    with closing(DuckStore(path)) as store:
        store.commit(SpanBatch(), one_record(store.run_no("r")), [], [])
        rows = store.ask(Query(f"{ROW} ORDER BY scope_schema NULLS FIRST")).rows

    assert columns(path)[: len(EXPORTER)] == EXPORTER
    assert [row[2:5] for row in rows] == [(None, None, None), ("resource_schema", "scope_schema", "scope_attributes")]
    assert {row[:2] for row in rows} == {("2023-11-14 22:13:20", "body")}


def test_a_journal_of_before_is_read(tmp_path):
    """A group that an earlier version wrote, before these columns were, is recovered."""
    from clawtrace.store.raw.journal import _read_batch

    data = json.loads(json.dumps(vars(one_record(1)), default=vars))
    for name in ("resource_schema", "scope_schema", "scope_attributes"):
        del data[name]
    batch = _read_batch(LogBatch(), data)

    assert (batch.resource_schema, batch.scope_schema, list(batch.scope_attributes.rows())) == ([""], [""], [{}])
    assert batch.body == ["body"]

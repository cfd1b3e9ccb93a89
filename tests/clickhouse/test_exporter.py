"""The official Collector fills ClickHouse with its own exporter (`collector-config/to-clickhouse.yaml`), and clawtrace judges there."""

from __future__ import annotations

import json
import urllib.request

import pytest
from store_conformance import RECORDINGS, asked

from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from otelcol import Collector

pytestmark = [pytest.mark.needs("clickhouse", "otelcol")]

SOME = ["pydantic-ai", "langchain+openinference", "claude-code", "codex", "openclaw", "openai-agents+openllmetry"]


@pytest.fixture
def exported(server, tmp_path):
    """Have the exporter create the tables in an empty database, and send it what `send` does."""
    server.run("DROP DATABASE IF EXISTS otel")

    def through(send) -> None:
        collector = Collector(
            "to-clickhouse", tmp_path, CLICKHOUSE_ENDPOINT=f"http://127.0.0.1:{server.port}?compress=none"
        )
        try:
            send(collector)
            collector.stop()  # it writes what it holds
        finally:
            collector.kill()
        assert "error" not in collector.log.read_text().lower(), collector.log.read_text()[-2000:]

    yield through
    server.make_tables("otel")


def post(collector, signal, body):
    """Send one request of OTLP JSON."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{collector.address}/v1/{signal}", body.encode(), headers)
    urllib.request.urlopen(request, timeout=30).close()


def post_recordings(collector, folders):
    """Send all that recordings hold, log records without a run among it."""
    for folder in folders:
        with Session.open() as session:
            session.load_recordings([folder], Grouping("one", "all"))
            for line in session.exported("all"):
                post(collector, "traces" if line.startswith('{"resourceSpans"') else "logs", line)


COMPARED = {
    "otel_traces": "Timestamp, TraceId, SpanId, ParentSpanId, TraceState, SpanName, SpanKind, ServiceName, ResourceAttributes, ScopeName, "
    "ScopeVersion, SpanAttributes, Duration, StatusCode, StatusMessage, Events.Timestamp, Events.Name, Events.Attributes, Links.TraceId, "
    "Links.SpanId, Links.TraceState, Links.Attributes",
    "otel_logs": "Timestamp, TraceId, SpanId, TraceFlags, SeverityText, SeverityNumber, ServiceName, Body, ResourceAttributes, ScopeName, "
    "ScopeVersion, LogAttributes, EventName",
}


def rows_of(server, table, columns):
    """The rows as texts, without an order among them or among the entries of a map."""
    return sorted(json.dumps(row, sort_keys=True) for row in server.rows(f"SELECT {columns} FROM {table}"))


def test_the_exporters_rows_are_judged_as_the_recording_is(exported, server):
    """Its own tables, its own inserts: verdicts of each type are those of DuckDB on six clients, and the rows are those that tests write."""
    folders = [RECORDINGS / name for name in SOME]
    exported(lambda collector: post_recordings(collector, folders))
    pairs = asked(server, "otel", SOME, 100)
    server.make_tables("stand_in")
    server.write(folders, "stand_in")

    assert [pair for pair in pairs if not pair.same] == []
    for table, columns in COMPARED.items():
        real, written = (rows_of(server, f"{name}.{table}", columns) for name in ("otel", "stand_in"))
        assert real == written, table

"""What a Collector wrote into ClickHouse is judged as the same spans are in a recording: one way to facts, one to verdicts."""

from __future__ import annotations

import pytest
from store_conformance import EVERY_CLIENT, RECORDINGS, compared

from clawtrace.session.clickhouse import ClickHouseSession

pytestmark = pytest.mark.needs("clickhouse")

SOME = ["openclaw", "claude-code", "langchain+openinference", "pydantic-ai", "openai-agents+openllmetry", "codex"]


def differences(server, database, names, every):
    """Return where the two stores disagree."""
    return [pair for pair in compared(server, database, names, every) if not pair.same]


def test_some_recordings_give_the_verdicts_that_duckdb_gives(server, database):
    """One assertion of each type, and three of parts of runs, on recordings of six clients; logs among them."""
    assert differences(server, database, SOME, 100) == []


@pytest.mark.timeout(900)
def test_every_recording_gives_the_verdicts_that_duckdb_gives(server, database):
    """One assertion of each type, and three of parts of runs, on all recordings."""
    assert differences(server, database, EVERY_CLIENT, 100) == []


def test_what_the_exporter_does_not_write_is_unknown(server, database):
    """Types of attributes are NULL, not text; flags and dropped counts are NULL, not zero."""
    server.write([RECORDINGS / "pydantic-ai"], database)
    with ClickHouseSession.open_at(server.address(database)) as there:
        types = there.query("SELECT DISTINCT type FROM attributes").rows
        raw = there._store.script("SELECT DISTINCT flags, dropped_attributes, attribute_types FROM otel_traces")

    assert types == [(None,)]
    assert raw == [(None, None, None)]


def test_secrets_are_redacted_on_the_way(server, database):
    """The Collector's rows hold what was sent; the relations, and what is published, hold marks."""
    secret = "sk-proj-" + "a1B2c3D4" * 6
    server.run(
        "INSERT INTO otel_traces (Timestamp, TraceId, SpanId, SpanName, SpanAttributes, Duration) VALUES "
        f"(now64(9) - 3600, '{'a' * 32}', '{'b' * 16}', 'chat', {{'note': 'key {secret}'}}, 5)",
        database=database,
    )
    with ClickHouseSession.open_at(server.address(database)) as there:
        ((value,),) = there.query("SELECT value FROM attributes WHERE key = 'note'").rows

    assert value.startswith("key [REDACTED:")

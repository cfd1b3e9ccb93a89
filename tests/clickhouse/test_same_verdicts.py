"""What a Collector wrote into ClickHouse is judged as the same spans are in a recording: one way to facts, one to verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from clawtrace.assertions import registry
from clawtrace.assertions.probe import Probe
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.clickhouse import ClickHouseSession
from clawtrace.session.session import Session

RECORDINGS = Path(__file__).parents[1] / "recordings"
pytestmark = pytest.mark.needs("clickhouse")

CASES = Path(__file__).parents[1] / "assertions" / "cases"
SOME = ["openclaw", "claude-code", "langchain+openinference", "pydantic-ai", "openai-agents+openllmetry", "codex"]
EVERY = sorted(path.name for path in RECORDINGS.iterdir() if path.is_dir())
SCOPED = [
    {"type": "tool_call_count", "max": 3, "agent": "re:.*"},
    {"type": "no_span_errors", "turn": 1},
    {"type": "trace_token_budget", "max_total_tokens": 100_000, "turn": "last"},
]
SAID_BY_THE_ENGINE = {"sql"}
"""A user's own SQL without an order has the engine's: its rows are compared as a set, and not the message that shows some."""


def questions(every):
    """Every so many of the assertions that the cases ask, of each type at least one, and some of a part of a run."""
    found = []
    for file in sorted(CASES.glob("*.yaml")):
        if not issubclass(registry.get(file.stem), Probe):
            cases = yaml.safe_load(file.read_text(encoding="utf-8"))
            found += [{"type": file.stem} | case["assert"] for case in cases[::every]]
    return [registry.parse_assertion(one) for one in [*found, *SCOPED]]


def said(result, verdict):
    """What a verdict says, apart from how an engine writes numbers as text."""
    spans = {row.span_id for row in verdict.evidence}
    message, actual = verdict.message, str(verdict.actual)
    if verdict.type in SAID_BY_THE_ENGINE and isinstance(verdict.actual, dict):
        message, actual = "", str(sorted(map(str, verdict.actual["rows"])))
    return verdict.status, verdict.final, message, verdict.missing, actual, spans


def differences(server, database, names, every):
    """Return where the two stores disagree, by run and assertion."""
    folders = [RECORDINGS / name for name in names]
    server.write(folders, database)
    asked = questions(every)
    with Session.open() as ours:
        ours.load_recordings(folders, Grouping.by_attribution())
        run_ids = ours.run_ids()
        expected = ours.evaluate(run_ids, asked)
    with ClickHouseSession.open_at(server.address(database)) as there:
        assert set(there.run_ids()) == set(run_ids)
        found = there.evaluate(run_ids, asked)
    return [
        (one.run_id, verdict.id, said(one, verdict), said(other, twin))
        for one, other in zip(expected, found, strict=True)
        for verdict, twin in zip(one.verdicts, other.verdicts, strict=True)
        if said(one, verdict) != said(other, twin)
    ]


def test_some_recordings_give_the_verdicts_that_duckdb_gives(server, database):
    """One assertion of each type, and three of parts of runs, on recordings of six clients; logs among them."""
    assert differences(server, database, SOME, 100) == []


@pytest.mark.timeout(900)
def test_every_recording_gives_the_verdicts_that_duckdb_gives(server, database):
    """Every tenth of the assertion cases on all recordings."""
    assert differences(server, database, EVERY, 10) == []


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

"""A run that was exported and read again has the same facts (spec: cli.md, `runs export`)."""

from __future__ import annotations

import json

import pytest

from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.export import export_run

FACTS = ("traces", "spans", "dialects", "llm_calls", "tool_calls", "agents", "delegations", "errors", "totals")


def facts_of(store, path):
    """Store a recording as one run and return its facts."""
    with Session.open(store) as session:
        session.load_recordings([path], Grouping("one", "x"))
        (run,) = session.inspect(["x"])["runs"]
        return {key: run[key] for key in FACTS}


@pytest.mark.parametrize("agent", ["claude-code", "codex", "google-adk", "vercel-ai7", "pydantic-ai", "openclaw"])
@pytest.mark.full
def test_an_exported_run_has_the_same_facts(recordings, tmp_path, agent):
    """Numbers stay numbers, lists lists, and events, links and log records are there."""
    recorded = facts_of(tmp_path / "a.duckdb", sorted((recordings / agent).iterdir())[0])
    held = DuckStore(tmp_path / "a.duckdb")
    try:
        (tmp_path / "x.otlp.jsonl").write_text("".join(f"{line}\n" for line in export_run(held, "x")))
    finally:
        held.close()

    assert recorded["spans"] > 1
    assert facts_of(tmp_path / "b.duckdb", tmp_path / "x.otlp.jsonl") == recorded


def test_a_long_run_is_exported_in_order(tmp_path):
    """Each span once, 500 a line, in the order of their arrival."""
    spans = [
        {
            "traceId": "1" * 32,
            "spanId": f"{number + 1:016x}",
            "name": str(number),
            "startTimeUnixNano": str(1_800_000_000_000_000_000 - number),
        }
        for number in range(1_201)
    ]
    requests = [
        {"resourceSpans": [{"scopeSpans": [{"spans": spans[start : start + 7]}]}]} for start in range(0, len(spans), 7)
    ]
    (tmp_path / "long.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in requests))
    with Session.open(tmp_path / "a.duckdb") as session:
        session.load_recordings([tmp_path / "long.jsonl"], Grouping("one", "x"))
        lines = [json.loads(line)["resourceSpans"] for line in session.exported("x")]

    names = [
        [int(span["name"]) for one in line for part in one["scopeSpans"] for span in part["spans"]] for line in lines
    ]
    assert [len(line) for line in names] == [500, 500, 201]
    assert [name // 7 for line in names for name in line] == sorted(number // 7 for number in range(1_201))

"""A run that was exported and read again has the same facts (spec: cli.md, `runs export`)."""

from __future__ import annotations

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

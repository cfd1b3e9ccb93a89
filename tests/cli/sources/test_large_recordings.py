"""Recordings that are too large for memory are kept in a file while they are judged."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest

from clawtrace.cli.sources import source
from clawtrace.cli.sources.source import Recordings, TraceSource
from clawtrace.model.progress import unseen
from clawtrace.session.session import SessionSettings

RECORDED = Path(__file__).parents[2] / "recordings" / "pydantic-ai"


@pytest.mark.parametrize("most", [0, 1 << 30])
def test_where_the_spans_are_changes_no_fact_and_leaves_nothing(most, tmp_path, monkeypatch):
    """A file in the system's folder for them holds the spans, and goes with the command."""
    monkeypatch.setattr(source, "_IN_MEMORY", most)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    named = TraceSource(Recordings((RECORDED,), "dir"), None)

    with named.held(SessionSettings(), unseen) as (session, run_ids):
        files = [*tmp_path.glob("clawtrace-*/spans.duckdb")]
        found = session.query("SELECT run_id, llm_calls_low, tool_calls_low FROM run_totals ORDER BY run_id").rows

    assert len(files) == (0 if most else 1)
    assert len(found) == len(run_ids) > 0
    assert sum(row[1] for row in found) > 0
    assert not [*tmp_path.iterdir()]


def test_compressed_recordings_count_as_what_they_become(tmp_path):
    """Ten times as much, which is about what exporters' JSON is compressed to."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "plain.jsonl").write_bytes(b"x" * 100)
    packed = gzip.compress(b"x" * 100)
    (tmp_path / "inner" / "packed.jsonl.gz").write_bytes(packed)

    assert source._size(tmp_path) == 100 + 10 * len(packed)
    assert source._size(tmp_path / "inner" / "plain.jsonl") == 100
    assert source._size(Path("-")) == 0

"""Whole runs between stores, and out of one (`clawtrace.store.whole_runs`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawtrace.assertions.registry import parse_assertion
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.whole_runs import copy_run, forget_runs

RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.fixture
def first(tmp_path):
    """A store with two recorded runs and their facts."""
    path = tmp_path / "first.duckdb"
    with Session.open(path) as session:
        for name in ("pydantic-ai/one_tool", "pydantic-ai/delegation"):
            session.load_recordings([RECORDINGS / name], Grouping("one", name))
        session.inspect()
    return path


def facts(path, run_id):
    with Session.open(path) as session:
        (run,) = session.inspect([run_id])["runs"]
    return run


def test_a_copied_run_has_the_same_facts_and_verdicts(first, tmp_path):
    """Spans, record and counts come along, and only that run's."""
    second = tmp_path / "second.duckdb"
    with Session.open(second) as session:
        session.load_recordings([RECORDINGS / "pydantic-ai/one_tool"], Grouping("one", "other"))
    source, target = DuckStore(first), DuckStore(second)
    copy_run(source, target, "pydantic-ai/delegation")
    copy_run(source, target, "pydantic-ai/delegation")
    source.close()
    target.close()

    assert facts(second, "pydantic-ai/delegation") == facts(first, "pydantic-ai/delegation")
    with Session.open(second) as session:
        assert session.run_ids() == ["other", "pydantic-ai/delegation"]
        (result,) = session.evaluate(["pydantic-ai/delegation"], [parse_assertion({"type": "no_span_errors"})])
        assert result.complete is True


def test_a_forgotten_run_leaves_nothing_and_no_number_is_used_again(first):
    """The other run's facts stay; the forgotten one can come again."""
    before = facts(first, "pydantic-ai/one_tool")
    store = DuckStore(first)
    forget_runs(store, ["pydantic-ai/delegation", "never there"])
    store.close()
    store = DuckStore(first)
    rows = store.script("SELECT count(*) FROM otel_traces WHERE run_no = 2")
    spans = store.script("SELECT count(*) FROM spans WHERE run_id <> 'pydantic-ai/one_tool'")
    new = store.run_no("another")
    store.close()

    assert (rows, spans, new) == ([(0,)], [(0,)], 3)
    assert facts(first, "pydantic-ai/one_tool") == before
    with Session.open(first) as session:
        session.load_recordings([RECORDINGS / "pydantic-ai/delegation"], Grouping("one", "pydantic-ai/delegation"))
        assert session.inspect(["pydantic-ai/delegation"])["runs"][0]["spans"] > 0


def test_a_file_with_other_relations_is_brought_up_to_date(first):
    """Facts are derived: a store of an earlier version gets this version's columns, and its facts are computed anew."""
    before = facts(first, "pydantic-ai/delegation")
    store = DuckStore(first)
    store.script("ALTER TABLE commands DROP COLUMN ok")
    store.script("DROP TABLE run_tools")
    store.close()

    assert facts(first, "pydantic-ai/delegation") == before
    store = DuckStore(first)
    assert store.script("SELECT count(ok), (SELECT count(*) > 0 FROM run_tools) FROM commands") == [(0, True)]
    store.close()

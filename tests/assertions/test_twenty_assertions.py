"""The benchmark's twenty assertions are the same SQL on two engines, and come to the same verdicts."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import on_chdb
import twenty_assertions
from fact_store import fact_store

RUNS = 400
"""Every kind of run that the store has at least once: a run that is not closed is one in 400."""


@pytest.mark.needs("chdb")
def test_both_engines_come_to_the_same_statuses(tmp_path):
    """All twenty of all runs, through the whole evaluation, and not because one of them could not be asked."""
    facts = tmp_path / "facts.duckdb"
    store, run_ids = fact_store(facts, RUNS)
    ours = twenty_assertions.measure(store, run_ids)
    store.close()
    other = on_chdb.filled_chdb(facts)
    theirs = twenty_assertions.measure(other, run_ids)
    other.close()

    statuses = {str(standing.status) for result in theirs.results for standing in result.standings}
    assert not twenty_assertions.different(ours.results, theirs.results)
    assert theirs.exit_code == ours.exit_code
    assert statuses >= {"pass", "fail", "skip", "inconclusive"}
    assert "error" not in statuses


def test_without_the_other_engine_the_benchmark_says_what_to_install(monkeypatch, capsys):
    """Before anything is written."""
    monkeypatch.setattr(sys, "argv", ["twenty_assertions.py", "300", "--engine", "chdb"])
    monkeypatch.setattr(on_chdb.importlib.util, "find_spec", lambda _name: None)

    with pytest.raises(SystemExit, match=r"chDB .* is not installed here: python -m pip install chdb"):
        twenty_assertions.main()
    assert capsys.readouterr().out == ""

"""Verdicts that are made when they are read: the same as those that were counted, for one run and for many."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import pytest
from fact_store import fact_store
from twenty_assertions import QUESTIONS

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.model.query import BoundRelation, Query
from clawtrace.model.verdict import Status, run_status_of
from clawtrace.store.api import Columns
from clawtrace.store.questions.question_side import QuestionSide
from clawtrace.verdicts.evaluate import evaluate

RUNS = 400


@pytest.mark.full
def test_many_runs_are_judged_as_each_alone(tmp_path: Path) -> None:
    """Statuses counted from columns are those of the verdicts that are read; together they are what they are alone."""
    store, run_ids = fact_store(tmp_path / "facts.duckdb", RUNS)
    dialects = {dialect.name: dialect for dialect in load_dialects()}
    assertions = [parse_assertion(question) for question in QUESTIONS]
    results = evaluate(store, assertions, run_ids, dialects, evidence_of_passes=False)
    alone = {
        run_id: evaluate(store, assertions, [run_id], dialects, evidence_of_passes=False)[0] for run_id in run_ids[:8]
    }
    store.close()

    for result in results:
        assert [verdict.standing for verdict in result.verdicts] == list(result.standings)
        assert result.status is run_status_of(result.verdicts)
        assert result.not_passed() == [one for one in result.verdicts if one.status is not Status.PASS]
    # What the fact store says of itself: each hundred runs hold one of each mishap, each two hundred one without trace.
    counted = Counter((verdict.type, verdict.status) for result in results for verdict in result.verdicts)
    assert counted["tool_not_invoked", Status.FAIL] == RUNS // 100
    assert counted["no_span_errors", Status.FAIL] == RUNS // 100
    assert counted["trace_cost", Status.WARN] == RUNS // 100
    assert counted["tool_not_invoked", Status.SKIP] == RUNS // 200
    assert counted["tool_not_invoked", Status.INCONCLUSIVE] == RUNS // 100 + RUNS // 400
    for result in results[:8]:
        for one, other in zip(result.verdicts, alone[result.run_id].verdicts, strict=True):
            assert (one.status, one.final, one.message, one.actual, one.evidence, one.hint) == (
                other.status, other.final, other.message, other.actual, other.evidence, other.hint,
            )  # fmt: skip


def test_questions_about_the_same_names_read_them_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven of the twenty ask about names of tools; in the next evaluation they are read anew."""
    store, run_ids = fact_store(tmp_path / "facts.duckdb", 50)
    monkeypatch.setattr(store, "sides", lambda: [store])
    dialects = {dialect.name: dialect for dialect in load_dialects()}
    read: Counter[str] = Counter()
    asked = QuestionSide.ask_columns

    def count(side: QuestionSide, query: Query, bound: Sequence[BoundRelation] = ()) -> Columns:
        read[query.sql] += 1
        return asked(side, query, bound)

    monkeypatch.setattr(QuestionSide, "ask_columns", count)
    assertions = [parse_assertion(question) for question in QUESTIONS]
    for time in (1, 2):
        evaluate(store, assertions, run_ids, dialects)
        values = [times for sql, times in read.items() if sql.startswith("SELECT DISTINCT") and "FROM run_tools" in sql]
        assert values == [time]
    store.close()

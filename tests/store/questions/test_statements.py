"""Texts are parsed once and planned each time."""

from __future__ import annotations

import duckdb
import pytest

from clawtrace.store.questions import statements
from clawtrace.store.questions.question_side import QuestionSide


def test_a_known_text_sees_what_has_changed_since() -> None:
    """Neither rows nor the columns of a table that was made anew are remembered with a text."""
    asked = QuestionSide(duckdb.connect(), "", lambda: None)
    asked._run("CREATE TABLE t AS SELECT 1::BIGINT AS a")
    before = asked._run("SELECT * FROM t WHERE a >= $least", {"least": 1}).fetchall()
    asked._run("INSERT INTO t VALUES (5000000000)")
    more = asked._run("SELECT * FROM t WHERE a >= $least", {"least": 2}).fetchall()
    asked._run("CREATE OR REPLACE TABLE t AS SELECT 'x' AS b, 7 AS a")
    other = asked._run("SELECT * FROM t WHERE a >= $least", {"least": 1}).fetchall()

    assert (before, more, other) == ([(1,)], [(5000000000,)], [("x", 7)])


def test_a_text_of_several_statements_returns_the_last_ones_rows() -> None:
    """Also the second time."""
    asked = QuestionSide(duckdb.connect(), "", lambda: None)
    text = "CREATE OR REPLACE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); SELECT sum(a) FROM t"

    assert [asked._run(text).fetchall() for _ in range(2)] == [[(3,)], [(3,)]]


def test_a_text_that_cannot_be_parsed_is_refused_every_time() -> None:
    """In the engine's words."""
    asked = QuestionSide(duckdb.connect(), "", lambda: None)
    for _ in range(2):
        with pytest.raises(duckdb.ParserException, match="syntax error"):
            asked._run("SELEC 1")


def test_a_text_that_another_connection_parsed_runs_on_this_one() -> None:
    """Each connection answers from its own tables."""
    for number in range(2):
        asked = QuestionSide(duckdb.connect(), "", lambda: None)
        asked._run(f"CREATE TABLE t AS SELECT {number} AS a")

        assert asked._run("SELECT a FROM t").fetchone() == (number,)


def test_texts_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service may be asked anything, for months."""
    monkeypatch.setattr(statements, "_KEPT", 3)
    monkeypatch.setattr(statements, "_parsed", {})
    asked = QuestionSide(duckdb.connect(), "", lambda: None)
    for number in range(10):
        assert asked._run(f"SELECT {number}").fetchone() == (number,)

    assert len(statements._parsed) <= 3

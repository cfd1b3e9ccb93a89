"""Texts are parsed once and planned each time."""

from __future__ import annotations

import duckdb
import pytest

from clawtrace.store.questions import statements
from clawtrace.store.questions.statements import Statements


def test_a_known_text_sees_what_has_changed_since() -> None:
    """Neither rows nor the columns of a table that was made anew are remembered with a text."""
    asked = Statements(duckdb.connect())
    asked.run("CREATE TABLE t AS SELECT 1::BIGINT AS a")
    before = asked.run("SELECT * FROM t WHERE a >= $least", {"least": 1}).fetchall()
    asked.run("INSERT INTO t VALUES (5000000000)")
    more = asked.run("SELECT * FROM t WHERE a >= $least", {"least": 2}).fetchall()
    asked.run("CREATE OR REPLACE TABLE t AS SELECT 'x' AS b, 7 AS a")
    other = asked.run("SELECT * FROM t WHERE a >= $least", {"least": 1}).fetchall()

    assert (before, more, other) == ([(1,)], [(5000000000,)], [("x", 7)])


def test_a_text_of_several_statements_returns_the_last_ones_rows() -> None:
    """Also the second time."""
    asked = Statements(duckdb.connect())
    text = "CREATE OR REPLACE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); SELECT sum(a) FROM t"

    assert [asked.run(text).fetchall() for _ in range(2)] == [[(3,)], [(3,)]]


def test_a_text_that_cannot_be_parsed_is_refused_every_time() -> None:
    """In the engine's words."""
    asked = Statements(duckdb.connect())
    for _ in range(2):
        with pytest.raises(duckdb.ParserException, match="syntax error"):
            asked.run("SELEC 1")


def test_a_text_that_another_connection_parsed_runs_on_this_one() -> None:
    """Each connection answers from its own tables."""
    for number in range(2):
        asked = Statements(duckdb.connect())
        asked.run(f"CREATE TABLE t AS SELECT {number} AS a")

        assert asked.run("SELECT a FROM t").fetchone() == (number,)


def test_texts_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service may be asked anything, for months."""
    monkeypatch.setattr(statements, "_KEPT", 3)
    asked = Statements(duckdb.connect())
    for number in range(10):
        assert asked.run(f"SELECT {number}").fetchone() == (number,)

    assert len(asked._parsed) <= 3

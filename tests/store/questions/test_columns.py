"""Answers in columns: the same values as rows have, and nothing of a store's rows is lost by narrowing."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from clawtrace.errors import QueryError, StoreError
from clawtrace.model.query import BoundRelation, Query
from clawtrace.store.arrow import rows_table
from clawtrace.store.duckdb import DuckStore

VALUES = """
SELECT 'r' || i AS run_id, i AS whole, i / 4.0 AS part, i % 2 = 0 AS truth, sum(i) OVER () AS wide, NULL AS nothing,
       CASE WHEN i % 3 = 0 THEN NULL ELSE 'é' || i END AS text, CASE WHEN i % 5 = 0 THEN NULL ELSE i > 7 END AS doubt,
       CASE WHEN i % 7 = 0 THEN NULL ELSE i * 10 END AS hole
FROM range(300000) AS g(i)
"""


@pytest.fixture
def store() -> Iterator[DuckStore]:
    made = DuckStore()
    yield made
    made.close()


@pytest.mark.full
def test_columns_and_rows_hold_what_a_plain_answer_holds(store: DuckStore) -> None:
    """Over several chunks, with NULLs, text beyond ASCII and sums wider than 64 bits."""
    plain, columns = store.ask(Query(VALUES)), store.ask_columns(Query(VALUES))
    place = {run_id: row for row, run_id in enumerate(columns.column("run_id"))}
    wanted = {row["run_id"]: row for row in plain.dicts()}

    assert columns.columns == plain.columns
    assert len(columns) == len(plain)
    for name in plain.columns:
        assert dict(zip(columns.column("run_id"), columns.column(name), strict=True)) == {
            run_id: row[name] for run_id, row in wanted.items()
        }
    for run_id in ("r0", "r1", "r2", "r122880", "r299999"):
        assert dict(columns.row(place[run_id])) == wanted[run_id]


def test_an_answer_outlives_its_store(store: DuckStore) -> None:
    found = store.ask_columns(
        Query("SELECT :a AS a, m.value AS b FROM few AS m", {"a": 7}), [BoundRelation("few", (("x", 0),))]
    )
    store.close()

    assert dict(found.row(0)) == {"a": 7, "b": "x"}


@pytest.mark.parametrize(
    "sql",
    ["SELECT nothing FROM nowhere", "SELECT CAST('a' || i AS bigint) AS a FROM range(300000) AS g(i)"],
    ids=["refused", "broken while it is read"],
)
def test_what_the_engine_refuses_is_a_query_error(store: DuckStore, sql: str) -> None:
    with pytest.raises(QueryError):
        store.ask_columns(Query(sql))


def test_narrowing_changes_no_answer_and_leaves_everything_as_it_was(store: DuckStore) -> None:
    """Inside, the named relations hold the chosen runs only; afterwards all of them again."""
    store.script(
        "INSERT INTO agents BY NAME SELECT 'r' || i AS run_id, i AS activation_no, 'a' AS name FROM range(9) AS g(i)"
    )
    asked = Query(
        "SELECT a.run_id AS run_id, a.activation_no AS n FROM agents AS a JOIN selected_runs AS s ON s.run_id = a.run_id"
    )
    everything = Query("SELECT count(*) AS n FROM agents AS x")
    store.select_runs(["r3", "r5"])
    before = sorted(store.ask(asked).rows)
    with store.narrowed(["r3", "r5"], [asked, everything]):
        assert sorted(store.ask(asked).rows) == before == [("r3", 3), ("r5", 5)]
        assert store.ask(everything).rows == [(2,)]
        with pytest.raises(QueryError):
            store.ask(Query("SELECT nothing FROM nowhere"))

    assert store.ask(everything).rows == [(9,)]


def test_a_relation_that_is_named_without_an_alias_keeps_all_columns(store: DuckStore) -> None:
    """Which columns a text without an alias reads is not looked for; a second mention with one takes nothing away."""
    store.script("INSERT INTO agents BY NAME SELECT 'r1' AS run_id, 1 AS activation_no, 'a' AS name")
    bare = Query("SELECT name AS n FROM agents")
    aliased = Query("SELECT a.run_id AS run_id FROM agents AS a")
    with store.narrowed(["r1"], [bare, aliased]):
        assert store.ask(bare).rows == [("a",)]
        assert store.ask(aliased).rows == [("r1",)]


def test_narrowing_is_seen_on_every_side(store: DuckStore) -> None:
    """Also where it ends because what was asked failed."""
    store.script("INSERT INTO agents BY NAME SELECT 'r' || i AS run_id, i AS activation_no FROM range(9) AS g(i)")
    counted = Query("SELECT count(x.run_id) AS n FROM agents AS x")
    sides = store.sides()
    assert len(sides) == 2
    narrowed = store.narrowed(["r3", "r5"], [counted])
    with pytest.raises(QueryError), narrowed:  # noqa: PT012
        assert [side.ask(counted).rows for side in sides] == [[(2,)], [(2,)]]
        sides[1].ask(Query("SELECT nothing FROM nowhere"))

    assert [side.ask(counted).rows for side in sides] == [[(9,)], [(9,)]]
    with store.narrowed(["r1"], [counted]):
        assert [side.ask(counted).rows for side in sides] == [[(1,)], [(1,)]]


def test_keys_of_columns_are_equal_where_values_and_order_are(store: DuckStore) -> None:
    """Of texts, of texts with NULLs among them, and of numbers; in columns and in rows."""
    store.select_runs([f"r{i}" for i in range(3_000)])  # from 2 000 runs on answers come in columns
    for value in ("'r' || i", "CASE WHEN i % 3 = 0 THEN NULL ELSE 'r' || i END", "i % 7"):
        sql = f"SELECT {value} AS v FROM range(3000) AS g(i) ORDER BY i"
        ascending, again = store.ask_columns(Query(sql)), store.ask_columns(Query(sql))
        descending = store.ask_columns(Query(f"{sql} DESC"))
        fewer = store.ask_columns(Query(f"{sql} LIMIT 2999"))
        assert ascending.key("v") == again.key("v")
        assert len({one.key("v") for one in (ascending, descending, fewer)}) == 3
        plain = store.ask(Query(sql))
        assert plain.key("v") == store.ask(Query(sql)).key("v") != store.ask(Query(f"{sql} DESC")).key("v")


def test_the_planner_knows_how_many_runs_are_selected(store: DuckStore) -> None:
    """However many were selected before: deleted rows, which it would count, took the wrong side of a join."""
    for selected in (5_000, 4_000, 300, 5_000, 2):
        store.select_runs([f"r{i}" for i in range(selected)])
        size = store.script("SELECT estimated_size FROM duckdb_tables() WHERE table_name = 'selected_runs'")
        assert size == [(selected,)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint", [3, -(2**63), 2**63 - 1]),
        ("bigint", [None, 0, None, 7]),
        ("bigint", [None, None]),
        ("text", ["", "é", None, "x", None]),
        ("text", [None, "plain", "words", None]),
        ("double", [None, 0.5]),
        ("boolean", [None, True, False]),
    ],
)
def test_loaded_columns_come_back_as_they_were(store: DuckStore, kind: str, values: list[object]) -> None:
    """Whether some, all or none of the values are unknown, and whatever letters texts are of."""
    store.load("given", {"n": ("bigint", list(range(len(values)))), "value": (kind, values)})

    assert store.columns("SELECT value FROM given ORDER BY n").column("value") == values


def test_a_statement_that_the_engine_refuses_is_a_store_error(store: DuckStore) -> None:
    """With its words, whether it fails at once or while rows are read."""
    for sql in ("SELECT nothing FROM nowhere", "SELECT error('no ' || range) FROM range(3)"):
        with pytest.raises(StoreError, match=r"rejected a statement: .*(nowhere|no 0)"):
            store.columns(sql)


def test_arrays_are_freed_when_nothing_refers_to_them() -> None:
    """Without the collector, which is kept away where values are made in masses: no array is part of a cycle."""
    gc.collect()
    gc.disable()
    try:
        for values in (["a", None], [1, None], [0.5, None], [True, None]):
            kind = {str: "text", int: "bigint", float: "double", bool: "boolean"}[type(values[0])]
            rows_table({"column": (kind, values)})
        assert gc.collect() == 0
    finally:
        gc.enable()

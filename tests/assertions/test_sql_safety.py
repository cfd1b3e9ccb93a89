"""A user's own SQL on the real store: it reads, within limits, and nothing else; one run's failure is its own."""

import contextlib
import threading

import pytest
from assertion_facts import outcomes_of

from clawtrace.assertions.registry import parse_assertion
from clawtrace.errors import QueryError
from clawtrace.model.query import Limits
from clawtrace.model.verdict import Status
from clawtrace.store.duckdb import DuckStore
from clawtrace.verdicts.asking.ask import ask
from clawtrace.verdicts.evaluate import evaluate

ENDLESS = "SELECT count(*) AS n FROM range(1000000) AS a(x), range(1000000) AS b(y) WHERE a.x * b.y = 7"


@pytest.fixture(scope="module")
def store():
    """A store that whatever is tried leaves as it is."""
    with_runs = DuckStore()
    for run_id in ("r1", "r2"):
        with_runs.script(
            "INSERT INTO run_totals BY NAME SELECT $run_id AS run_id, 0 AS tool_calls_low", {"run_id": run_id}
        )
        with_runs.script(
            "INSERT INTO runs BY NAME SELECT $run_id AS run_id, $run_id AS case_id, 'exit' AS closed_by, true AS complete",
            {"run_id": run_id},
        )
    yield with_runs
    with_runs.close()


def count(store):
    return store.script("SELECT count(*) FROM run_totals")[0][0]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM run_totals WHERE run_id = :run_id",
        "WITH x AS (DELETE FROM run_totals RETURNING *) SELECT * FROM x WHERE run_id = :run_id",
        "SELECT * FROM query('DELETE FROM run_totals') WHERE run_id = :run_id",
        "SELECT :run_id; DROP TABLE run_totals",
        "ATTACH ':run_id' AS other",
        "COPY (SELECT :run_id) TO 'leak.csv'",
        "SELECT * FROM read_text('/etc/hostname') WHERE :run_id <> ''",
        "SELECT * FROM glob('/*') WHERE :run_id <> ''",
        "SELECT * FROM sniff_csv('/etc/hostname') WHERE :run_id <> ''",
        "SELECT * FROM enable_logging(storage = 'file', storage_path = 'logs') WHERE :run_id <> ''",
        "SELECT * FROM enable_profiling(save_location = 'profile.json') WHERE :run_id <> ''",
        "SET enable_external_access = true",
        "PRAGMA enable_profiling",
        "INSTALL httpfs",
        "SELECT * FROM force_checkpoint() WHERE :run_id <> ''",
        "SELECT 1 AS x, :run_id AS r, :other AS o",
        "SELECT 1 -- :run_id",
        "SELECT nonsense FROM nowhere WHERE run_id = :run_id",
    ],
)
def test_a_users_sql_cannot_change_the_store_or_reach_out_of_it(store, sql, tmp_path, monkeypatch):
    """Whatever it tries is an error that says so; the store holds what it held and answers the next question."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QueryError):
        store.ask_user(sql, {"run_id": "r1"}, limits=Limits(5))

    assert count(store) == 2
    assert store.ask_user("SELECT :run_id AS r", {"run_id": "r1"}).rows == [("r1",)]
    assert list(tmp_path.iterdir()) == []


def test_what_a_users_sql_does_to_its_own_session_is_taken_back(store):
    """Temporary tables of the question side are as they were, also those that no write protection covers."""
    store.select_runs(["r1", "r2"])
    sql = "WITH x AS (DELETE FROM selected_runs RETURNING *) SELECT count(*) FROM x WHERE :run_id = 'r1'"
    with contextlib.suppress(QueryError):
        store.ask_user(sql, {"run_id": "r1"})

    assert store.script("SELECT count(*) FROM selected_runs") == [(2,)]


def test_a_query_that_never_ends_is_interrupted_and_the_store_lives_on(store):
    """It ends as an error that names the limit; the next query is answered."""
    with pytest.raises(QueryError, match=r"ran longer than 0\.05 s"):
        store.ask_user(ENDLESS, limits=Limits(0.05))

    assert store.ask_user("SELECT 1 AS one", limits=Limits(5)).rows == [(1,)]
    assert count(store) == 2


@pytest.mark.parametrize("had_begun", [True, False])
def test_a_signal_at_the_first_instant_leaves_no_query_behind(store, monkeypatch, had_begun):
    """Ctrl-C while the query's thread starts: what has begun is ended, what has not never begins; the store lives on."""
    start, thread_of = threading.Thread.start, []
    began = threading.Event()
    answered = store._answer
    monkeypatch.setattr(store, "_answer", lambda *of: began.set() or answered(*of))

    def struck(thread: threading.Thread) -> None:
        thread_of.append(thread)
        if had_begun:
            start(thread)
            began.wait(30)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", struck)
        with pytest.raises(KeyboardInterrupt):
            store.ask_user(ENDLESS)
    if not had_begun:
        start(thread_of[0])
    thread_of[0].join(30)

    assert began.is_set() is had_begun
    assert not thread_of[0].is_alive()
    assert store.ask_user("SELECT 1 AS one", limits=Limits(5)).rows == [(1,)]


def test_only_so_many_rows_are_fetched(store):
    """A cross product of everything with everything is not brought into memory."""
    answer = store.ask_user("SELECT a.range FROM range(100000000) AS a", limits=Limits(60, 3))

    assert len(answer.rows) == 3


def test_one_runs_failure_is_its_own(store):
    """A query that fails for one run leaves the other's answer alone, and its run an error with the engine's words."""
    select = "SELECT CASE WHEN :run_id = 'r1' THEN error('no such luck') ELSE 'fine' END AS word"
    assertion = parse_assertion({"type": "sql", "select": select, "expect": [{"word": "fine"}]})
    asked = ask(store, assertion, ["r1", "r2"])

    assert {outcome.run_id: outcome.holds for outcome in outcomes_of(asked)} == {"r2": True}
    assert "no such luck" in asked.broken["r1"]


def test_a_verdict_shows_the_users_sql_and_the_rows(store):
    """Status, rows and SQL are those of the user's query, about this run; an error says why."""
    written = {
        "type": "sql",
        "select": "SELECT t.run_id AS who, 1.50 AS price FROM run_totals AS t WHERE t.run_id = :run_id",
    }
    (result,) = evaluate(store, [parse_assertion(written)], ["r2"], {})
    (verdict,) = result.verdicts

    assert (verdict.status, verdict.sql) == (Status.FAIL, written["select"].replace(":run_id", "'r2'"))
    assert verdict.actual == {"rows": [{"who": "r2", "price": 1.5}]}

    slow = {"type": "sql", "select": f"{ENDLESS} AND :run_id <> ''", "time_limit_s": 0.05}
    (result,) = evaluate(store, [parse_assertion(slow)], ["r2"], {})
    assert result.verdicts[0].status is Status.ERROR
    assert "ran longer than 0.05 s" in result.verdicts[0].message


def test_many_rows_are_counted_as_many(store):
    """Beyond what is shown the sentence says "more than", and no expectation of fewer rows is met."""
    assertion = parse_assertion({"type": "sql", "select": "SELECT range AS n FROM range(500) WHERE :run_id <> ''"})
    (outcome,) = outcomes_of(ask(store, assertion, ["r1"]))

    assert outcome.holds is False
    assert assertion.explain(outcome) == (
        'The query returned more than 100 rows; there should be none: {"n": 0}, {"n": 1}, {"n": 2}, and more.'
    )
    assert len(assertion.actual(outcome)["rows"]) == 100


def test_words_of_the_data_do_not_make_a_failing_question_a_failing_store(store):
    """DuckDB repeats the value that cannot be converted; agents' errors say the same as those of a disk."""
    with pytest.raises(QueryError, match="Permission denied"):
        store.ask_user(
            "SELECT CAST('Permission denied: ' || :run_id AS INTEGER) AS n", {"run_id": "r1"}, limits=Limits(5)
        )

"""`POST /clawtrace/v1/query`: a store that one process holds is asked by others, and nothing else is possible."""

from __future__ import annotations

import http.client
import json
import os
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from otlp_messages import RUN, post, span, traces

from clawtrace.errors import QueryError, StoreLockedError, UsageError
from clawtrace.receiver.receiver import Receiver
from clawtrace.receiver.transport.questions import QUESTIONS_PATH, QuestionReply, Questions
from clawtrace.session import held_store
from clawtrace.session.session import Session
from clawtrace.store.files.owner import Owner, read_owner, write_owner
from clawtrace.verdicts.reading.remote import HeldStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spans.duckdb"


@pytest.fixture
def session(path):
    with Session.open(path, receive=True) as running:
        yield running


@pytest.fixture
def owner(session, path) -> Owner:
    found = read_owner(path)
    assert found is not None
    return found


@pytest.fixture
def held(owner, path) -> HeldStore:
    return HeldStore(str(path), owner)


def send(session: Session, name: str, run: str = "r1") -> None:
    status, _, _ = post(
        session.endpoints.http, "/v1/traces", traces(span(name), resource={RUN: run}).SerializeToString()
    )
    assert status == 200


def ask(owner: Owner, body: bytes, token: str | None = None, method: str = "POST", **headers: str) -> tuple[int, dict]:
    fields = {"content-type": "application/json", "authorization": f"Bearer {owner.token if token is None else token}"}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection(urlsplit(owner.address).netloc, timeout=30)
    try:
        connection.request(method, QUESTIONS_PATH, body, fields)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


QUERY = json.dumps({"ask": "query", "sql": "SELECT 1 AS one"}).encode()


class TestAnswers:
    def test_facts_are_of_the_moment_of_the_question(self, session, held) -> None:
        """What arrived and was acknowledged a moment before is in the answer."""
        for number in range(3):
            send(session, f"s{number}")

            assert held.query("SELECT count(*) AS n FROM spans WHERE run_id = 'r1'").rows == [(number + 1,)]

    def test_inspect_is_what_the_holder_itself_would_say(self, session, held) -> None:
        send(session, "a")
        send(session, "b", run="r2")

        assert held.run_ids() == session.run_ids() == ["r1", "r2"]
        assert held.inspect(["r1"]) == json.loads(json.dumps(session.inspect(["r1"])))
        facts, trees = held.inspect_with_trees(["r1", "r2"])
        assert [run["run_id"] for run in facts["runs"]] == ["r1", "r2"]
        assert trees == {"r1": session.tree("r1"), "r2": session.tree("r2")}
        assert [node.name for node in trees["r1"]] == ["a"]

    def test_values_that_json_has_no_form_for(self, held) -> None:
        """They come as the text that every output shows."""
        sql = "SELECT 1.50::DECIMAL(5,2) AS d, DATE '2026-01-02' AS t, NULL AS n, true AS b, [1, 2] AS l, 'NaN'::DOUBLE AS f"
        (row,) = held.query(sql).rows

        assert row[:5] == ("1.50", "2026-01-02", None, True, [1, 2])
        assert str(row[5]) == "nan"

    def test_the_receiver_answers_exporters_while_a_question_is_open(self) -> None:
        """A question is answered away from the event loop and the writer."""
        asked, free = threading.Event(), threading.Event()

        def answer(body: bytes) -> tuple[int, bytes]:
            asked.set()
            free.wait(30)
            return QuestionReply(200, b"{}")

        from memory_sink import MemorySink

        receiver = Receiver(MemorySink(), environ={}, questions=Questions(answer, "t"))
        with receiver:
            owner = Owner(receiver.endpoints.http, "t", os.getpid())
            thread = threading.Thread(target=ask, args=(owner, QUERY))
            thread.start()
            assert asked.wait(30)
            status, _, _ = post(receiver.endpoints.http, "/v1/traces", traces(span("s")).SerializeToString())
            free.set()
            thread.join()

        assert status == 200

    def test_a_run_rests_while_a_question_is_open(self) -> None:
        """A question that comes while the end of a run is looked for, and is answered later, holds nothing up."""
        from memory_sink import MemorySink

        free = threading.Event()

        def answer(body: bytes) -> tuple[int, bytes]:
            free.wait(30)
            return QuestionReply(200, b"{}")

        rested: list[bool] = []
        with Receiver(MemorySink(), environ={}, questions=Questions(answer, "t")) as receiver:
            receiver.open_run("r1")
            owner = Owner(receiver.endpoints.http, "t", os.getpid())
            for _ in range(60):
                free.clear()
                thread = threading.Thread(target=ask, args=(owner, QUERY))
                thread.start()
                rested.append(all(receiver.rest("r1", 1) for _ in range(5)))
                free.set()
                thread.join()

        assert all(rested)

    def test_the_end_waits_for_the_question_that_is_being_answered(self, monkeypatch) -> None:
        """It has its answer before the store may be closed; one that waits behind it is asked to try again."""
        from memory_sink import MemorySink

        asked, free, ending = threading.Event(), threading.Event(), threading.Event()

        def answer(body: bytes) -> tuple[int, bytes]:
            asked.set()
            free.wait(30)
            return QuestionReply(200, b"{}")

        questions = Questions(answer, "t")
        wait_for_pool = questions._pool.shutdown

        def shutdown() -> None:
            ending.set()
            wait_for_pool()

        monkeypatch.setattr(questions._pool, "shutdown", shutdown)
        receiver = Receiver(MemorySink(), environ={}, questions=questions)
        owner = Owner(receiver.start().http, "t", os.getpid())
        statuses: list[int] = []
        one = threading.Thread(target=lambda: statuses.append(ask(owner, QUERY)[0]))
        one.start()
        assert asked.wait(30)
        stopping = threading.Thread(target=receiver.stop)
        stopping.start()
        assert ending.wait(30)
        late, _ = ask(owner, QUERY)
        assert stopping.is_alive()
        free.set()
        one.join()
        stopping.join()

        assert (statuses, late) == ([200], 503)


class TestRefused:
    @pytest.mark.parametrize("token", ["", "wrong", "tökén"])
    def test_without_the_token(self, owner, token) -> None:
        status, answer = ask(owner, QUERY, token.encode().decode("latin-1"))

        assert status == 401
        assert "`<store>.owner`" in answer["message"]

    def test_another_method_type_or_size(self, owner) -> None:
        assert ask(owner, b"", method="GET")[0] == 405
        assert ask(owner, QUERY, content_type="text/plain")[0] == 415
        assert ask(owner, b" " * (1 << 20) + QUERY)[0] == 413
        assert ask(owner, QUERY)[0] == 200

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"[]",
            b"1",
            b"{}",
            b'{"ask": "drop"}',
            b'{"ask": "query"}',
            b'{"ask": "inspect"}',
            b'{"ask": "query", "sql": 1}',
            b'{"ask": "runs", "sql": "SELECT 1"}',
            b'{"ask": "inspect", "run_ids": [1], "trees": false}',
            b"[" * 100_000,
            b"\xff\xfe\x00",
        ],
    )
    def test_what_is_no_question(self, owner, body) -> None:
        status, answer = ask(owner, body)

        assert (status, answer["error"]) == (400, "UsageError")

    @pytest.mark.parametrize(
        "sql", ["DROP TABLE spans", "SELECT 1; SELECT 2", "SELECT * FROM read_text('/etc/hosts')", "SELEC"]
    )
    def test_sql_that_is_no_single_select(self, held, sql) -> None:
        with pytest.raises(QueryError):
            held.query(sql)

    def test_a_run_that_there_is_not(self, held) -> None:
        with pytest.raises(UsageError, match="no run 'r9'"):
            held.inspect(["r9"])

    def test_a_query_that_runs_too_long(self, held, monkeypatch) -> None:
        monkeypatch.setattr(held_store, "QUERY_SECONDS", 0.05)
        with pytest.raises(QueryError, match=r"longer than 0\.05 s"):
            held.query(
                "SELECT count(*) FROM range(100000000) AS a, range(100000) AS b WHERE (a.range * b.range) % 7 = 3"
            )

    def test_an_answer_that_is_too_large_is_refused_never_cut(self, held, monkeypatch) -> None:
        monkeypatch.setattr(held_store, "MAX_ROWS", 10)
        monkeypatch.setattr(held_store, "MAX_ANSWER_BYTES", 1000)

        assert len(held.query("SELECT * FROM range(10)").rows) == 10
        with pytest.raises(QueryError, match="more than 10 rows"):
            held.query("SELECT * FROM range(11)")
        with pytest.raises(QueryError, match="larger than"):
            held.query("SELECT repeat('x', 1000)")

    def test_more_questions_than_may_wait(self) -> None:
        """They are asked to try again; those that wait are answered."""
        from memory_sink import MemorySink

        asked, free = threading.Semaphore(0), threading.Event()

        def answer(body: bytes) -> tuple[int, bytes]:
            asked.release()
            free.wait(30)
            return QuestionReply(200, b"{}")

        with Receiver(MemorySink(), environ={}, questions=Questions(answer, "t")) as receiver:
            owner = Owner(receiver.endpoints.http, "t", os.getpid())
            statuses: list[int] = []
            arrived = threading.Semaphore(0)

            def one() -> None:
                statuses.append(ask(owner, QUERY)[0])
                arrived.release()

            threads = [threading.Thread(target=one) for _ in range(12)]
            for thread in threads:
                thread.start()
            for _ in range(4):
                assert arrived.acquire(timeout=30)
            assert statuses == [503] * 4
            free.set()
            for thread in threads:
                thread.join()

        assert sorted(statuses) == [200] * 8 + [503] * 4


class TestHeldStore:
    def test_an_owner_that_does_not_answer_is_none(self, path, owner) -> None:
        """A stale address, or a stranger on the port, is no owner."""
        assert HeldStore.of(str(path)) is not None
        write_owner(path, Owner(owner.address, "another", os.getpid()))
        assert HeldStore.of(str(path)) is None
        write_owner(path, Owner("http://127.0.0.1:1", owner.token, os.getpid()))
        assert HeldStore.of(str(path)) is None

    def test_an_owner_that_ends_in_between_is_reported(self, path) -> None:
        with Session.open(path, receive=True):
            held = HeldStore.of(str(path))
        assert held is not None
        with pytest.raises(StoreLockedError, match="did not answer"):
            held.run_ids()

    def test_a_receiver_without_a_store_file_has_no_such_path(self, receiver) -> None:
        status, _, _ = post(receiver.endpoints.http, QUESTIONS_PATH, QUERY, "application/json")

        assert status == 404

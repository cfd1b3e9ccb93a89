"""What the sides of a store do at the same time is what one of them would have done alone."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier, get_ident

import pytest

from clawtrace.facts import facts
from clawtrace.model.relations import RELATIONS
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.store import duckdb
from clawtrace.store.api import at_once

RECORDINGS = sorted(
    path
    for client in ("langchain+openinference", "openai-agents+openllmetry", "claude-code", "vercel-ai7", "openclaw")
    for path in (Path(__file__).parents[1] / "recordings" / client).glob("**/*.otlp.jsonl*")
)


def relations() -> dict[str, list[tuple[object, ...]]]:
    """Every row of every relation of the recordings, whose facts are computed together."""
    with Session.open() as session:
        for number, path in enumerate(RECORDINGS):
            session.load_recordings([path], Grouping("one", f"r{number:02}"))
        session.inspect()
        return {
            name: sorted(session.query(f"SELECT * FROM {name}").rows, key=repr)
            for name in RELATIONS
            if name != "attributes"
        }


@pytest.mark.full
def test_facts_of_many_batches_at_once_are_those_of_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the batch of a run nor the side that computed it shows in any row."""
    with monkeypatch.context() as alone:
        alone.setattr(duckdb, "_SIDES", 1)
        expected = relations()
    monkeypatch.setattr(facts, "_BATCH_SPANS", 40)
    monkeypatch.setattr(facts, "_SHARED_SPANS", 1)
    assert len(RECORDINGS) >= 5
    assert len(expected["spans"]) > 80  # so there are three batches at least

    assert relations() == expected


def test_every_job_is_done_once_and_two_at_the_same_time() -> None:
    """Two jobs that wait for each other are done; each side works in one thread, the first one in the caller's."""
    together = Barrier(2, timeout=30)
    done: list[tuple[int, str, int]] = []

    def job(number: int, side: str) -> None:
        if number < 2:
            together.wait()
        done.append((number, side, get_ident()))

    at_once(["a", "b"], [lambda side, number=number: job(number, side) for number in range(20)])

    assert sorted(number for number, _, _ in done) == list(range(20))
    threads = {side: {thread for _, of, thread in done if of == side} for side in ("a", "b")}
    assert threads["a"] == {get_ident()}
    assert len(threads["b"]) == 1
    assert threads["b"] != threads["a"]


def test_a_job_that_fails_is_raised_and_the_rest_left_out() -> None:
    """Whichever thread it failed in."""
    begun: list[int] = []

    def job(number: int, side: str) -> None:
        begun.append(number)
        raise ValueError(f"job {number}")

    with pytest.raises(ValueError, match=r"job \d"):
        at_once(["a", "b"], [lambda side, number=number: job(number, side) for number in range(20)])

    assert len(begun) <= 2


def test_nothing_to_do() -> None:
    """No job, no thread."""
    at_once(["a", "b"], [])

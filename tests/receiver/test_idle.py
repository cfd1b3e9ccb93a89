"""What a receiver does when nothing arrives for a while: the store moves its log into the file."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from memory_sink import MemorySink
from otlp_messages import RUN, post, span, traces

from clawtrace.receiver.receiver import Receiver
from clawtrace.session.session import Session


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call it a while after hundredths of a second."""
    monkeypatch.setattr("clawtrace.receiver.writer._IDLE_SECONDS", 0.02)


def send(base: str) -> None:
    status, _, _ = post(base, "/v1/traces", traces(span("s"), resource={RUN: "r1"}).SerializeToString())
    assert status == 200


def test_it_is_once_after_something_came(sink: MemorySink) -> None:
    """Not before anything came, not again while nothing more does; a failure of it does not end the receiver."""
    calls = threading.Semaphore(0)

    def idle() -> None:
        calls.release()
        raise OSError("the disk is gone")

    with Receiver(sink, environ={}, idle=idle) as receiver:
        assert not calls.acquire(timeout=0.2)
        for _ in range(2):
            send(receiver.endpoints.http)
            assert calls.acquire(timeout=30)
            assert not calls.acquire(timeout=0.2)


def test_the_store_of_a_session_is_checkpointed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every acknowledged span is in the file itself, without the log, while the receiver goes on."""
    from clawtrace.store.duckdb import DuckStore

    monkeypatch.setattr("clawtrace.store.duckdb._CHECKPOINT_BYTES", 1)
    done = threading.Event()
    real = DuckStore.checkpoint

    def checkpoint(store: DuckStore) -> None:
        real(store)
        done.set()

    monkeypatch.setattr(DuckStore, "checkpoint", checkpoint)
    path = tmp_path / "spans.duckdb"
    with Session.open(path, receive=True) as session:
        send(session.endpoints.http)
        assert done.wait(30)
        copy = tmp_path / "copy.duckdb"
        copy.write_bytes(path.read_bytes())
        assert session.arrived("r1") == 1
    with Session.open(copy) as session:
        assert session.run_ids() == ["r1"]
        assert session.query("SELECT count(*) FROM otel_traces").rows == [(1,)]

"""What was written leaves memory again, and no question meets the limit of that instant."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.store.test_duckdb import batch

from clawtrace.model.query import Query
from clawtrace.model.raw import LogBatch
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.files import cached_blocks

pytestmark = pytest.mark.full


@pytest.fixture
def store(tmp_path: Path, monkeypatch):
    """A store that counts a megabyte as many."""
    monkeypatch.setattr(cached_blocks, "_ROWS_BETWEEN", 1_000)
    monkeypatch.setattr(cached_blocks, "_MANY_BYTES", 1_000_000)
    monkeypatch.setattr(cached_blocks, "_FEW_BYTES", 0)
    with_file = DuckStore(tmp_path / "spans.duckdb")
    yield with_file
    with_file.close()


def written(store: DuckStore) -> int:
    """Write some blocks into the file, and return how many bytes of them are in memory."""
    store.commit(batch(store.run_no("r1"), 20_000), LogBatch(), [], [])
    store.script("CHECKPOINT")
    return kept(store)


def kept(store: DuckStore) -> int:
    """Return how many bytes of the file are in memory."""
    ((held,),) = store.script("SELECT memory_usage_bytes FROM duckdb_memory() WHERE tag = 'BASE_TABLE'")
    return held


def limit(store: DuckStore) -> str:
    ((now,),) = store.script("SELECT current_setting('memory_limit')")
    return now


@pytest.mark.smoke
def test_blocks_that_were_written_are_dropped(store: DuckStore) -> None:
    """The next group that comes drops them; what they hold is read from the file again."""
    before, usual = written(store), limit(store)
    store.commit(batch(store.run_no("r1"), 1_000), LogBatch(), [], [])

    assert before > 1_000_000 > kept(store)
    assert limit(store) == usual
    assert store.ask(Query("SELECT count(*), count(DISTINCT \"SpanAttributes\"['n']) FROM otel_traces")).rows == [
        (21_000, 20_000)
    ]


def test_not_while_a_question_is_asked(store: DuckStore) -> None:
    """A question may take the memory of the machine: blocks wait until it is answered."""
    before, asking, done = written(store), threading.Event(), threading.Event()

    def ask() -> None:
        with store.lock:
            asking.set()
            done.wait(30)

    thread = threading.Thread(target=ask)
    thread.start()
    asking.wait(30)
    store.commit(batch(store.run_no("r1"), 1_000), LogBatch(), [], [])
    done.set()
    thread.join()

    assert kept(store) >= before
    store.commit(batch(store.run_no("r1"), 1), LogBatch(), [], [])
    assert kept(store) < 1_000_000


def ask(store: DuckStore, times: int) -> None:
    for _ in range(times):
        assert store.ask(Query("SELECT count(*) FROM otel_traces")).rows == [(20_000,)]


def test_a_store_in_memory_writes_nothing_aside(tmp_path: Path, monkeypatch) -> None:
    """It has no file, and the working folder is not its."""
    monkeypatch.setattr(cached_blocks, "_ROWS_BETWEEN", 1)
    monkeypatch.chdir(tmp_path)
    store = DuckStore()
    store.commit(batch(store.run_no("r1"), 20_000), LogBatch(), [], [])

    ask(store, 1)
    assert list(tmp_path.iterdir()) == []
    store.close()

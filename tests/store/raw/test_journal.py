"""What was acknowledged waits in the journal: seen by every question, moved in bulk, never lost, counted once."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import duckdb
import pytest

from clawtrace.errors import StoreError
from clawtrace.model.query import Query
from clawtrace.model.raw import LogBatch, MapColumn, NestedMap, Receipt, SpanBatch, StrList
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.raw import journal

COUNT = 'SELECT count(*), count(DISTINCT "SpanId") FROM otel_traces'
RECEIPT = Receipt(1, 7, 7, "grpc", "traces", accepted=1)


def spans(*span_ids: str, run_no: int = 1, text: str = "välue \x00 \U0001f980") -> SpanBatch:
    """Spans with a value in every kind of column; one text is of every sort of character."""
    count = len(span_ids)
    offsets = list(range(count + 1))
    batch = SpanBatch()
    for name, column in vars(batch).items():
        if isinstance(column, list):
            setattr(batch, name, ["x"] * count)
    for name in ("flags", "dropped_attributes", "dropped_events", "dropped_links", "arrival_ns", "request_no"):
        setattr(batch, name, [7] * count)
    batch.start_ns, batch.end_ns = [0] * count, [2**64 - 1] * count
    batch.run_no, batch.span_id, batch.trace_id = [run_no] * count, list(span_ids), ["t"] * count
    batch.attributes = MapColumn([2 * place for place in offsets], ["k", "l"] * count, [text, "w"] * count)
    batch.resource = MapColumn([0] * (count + 1))
    batch.scope_attributes = MapColumn([0] * (count + 1))
    batch.event_times, batch.event_names = StrList(offsets, [2**63] * count), StrList(offsets, ["e"] * count)
    batch.event_attributes = NestedMap(offsets, MapColumn(offsets, ["k"] * count, ["v"] * count))
    batch.link_trace_ids, batch.link_span_ids, batch.link_states = (StrList(offsets, ["i"] * count) for _ in range(3))
    batch.link_attributes = NestedMap(offsets, MapColumn(offsets, ["k"] * count, ["v"] * count))
    return batch


def logs(*bodies: str, run_no: int = 1) -> LogBatch:
    count = len(bodies)
    batch = LogBatch()
    for name, column in vars(batch).items():
        if isinstance(column, list):
            setattr(batch, name, ["x"] * count)
    for name in (
        "flags",
        "severity_number",
        "dropped_attributes",
        "arrival_ns",
        "request_no",
        "time_ns",
        "observed_ns",
    ):
        setattr(batch, name, [7] * count)
    batch.run_no, batch.body = [run_no] * count, list(bodies)
    batch.resource, batch.attributes = MapColumn([0] * (count + 1)), MapColumn([0] * (count + 1))
    batch.scope_attributes = MapColumn([0] * (count + 1))
    return batch


def put(store: DuckStore, *span_ids: str, text: str = "v", run: str = "r") -> None:
    """Commit spans of a run, as the receiver does."""
    store.commit(spans(*span_ids, run_no=store.run_no(run), text=text), LogBatch(), [RECEIPT], [])


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.journal")


def begins(journal: bytes) -> list[int]:
    """Where the groups of a journal begin."""
    places = [journal.index(b"\n") + 1]
    while places[-1] < len(journal):
        places.append(places[-1] + 16 + int.from_bytes(journal[places[-1] + 8 : places[-1] + 12], "little"))
    return places[:-1]


def in_tables(path: Path) -> list[str]:
    """The names of the spans in the tables of a file that no process holds, and that no clawtrace opened since."""
    with duckdb.connect(path, read_only=True) as db:
        return [row[0] for row in db.execute('SELECT "SpanId" FROM otel_traces ORDER BY 1').fetchall()]


def killed(path: Path, body: str) -> None:
    """Run `body` in a separate process, with a store on `path`, and kill it where it waits."""
    head = (
        "import resource, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_journal import *\n"
        f"path = Path({str(path)!r})\n"
        "store = DuckStore(path)\n"
    )
    end = "\nprint('ready', flush=True)\nsys.stdin.read()\n"
    command = [sys.executable, "-c", head + body + end]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert line == "ready\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.duckdb"


class TestQuestions:
    ASKED: ClassVar[dict[str, Callable[[DuckStore], object]]] = {
        "script": lambda store: store.script("SELECT count(*) FROM otel_traces")[0][0],
        "ask": lambda store: store.ask(Query("SELECT count(*) FROM otel_traces", {})).rows[0][0],
        "ask_columns": lambda store: store.ask_columns(Query("SELECT count(*) AS n FROM otel_traces", {})).row(0)["n"],
        "ask_user": lambda store: store.ask_user("SELECT count(*) FROM otel_traces").rows[0][0],
        "another side": lambda store: store.sides()[-1].script("SELECT count(*) FROM otel_traces")[0][0],
        "known_runs": lambda store: len(store.known_runs()[1]),
        "numbers": lambda store: store.script("SELECT count(*) FROM run_numbers WHERE run_id = 'r'")[0][0],
        "receipts": lambda store: store.script("SELECT count(*) FROM receipts")[0][0],
    }

    @pytest.mark.parametrize("way", ASKED)
    def test_what_was_acknowledged_is_seen(self, path, way):
        """Every way to ask sees a span right after its commit returned."""
        store = DuckStore(path)
        put(store, "a")
        waiting = journal_of(path).stat().st_size

        assert self.ASKED[way](store) == 1
        assert journal_of(path).stat().st_size < waiting
        store.close()

    def test_questions_during_commits(self, path):
        """A reader never sees fewer spans than were acknowledged before it asked."""
        store = DuckStore(path)
        acknowledged = [0]

        def write() -> None:
            for place in range(300):
                put(store, f"s{place}")
                acknowledged[0] += 1

        writer = threading.Thread(target=write)
        writer.start()
        seen: list[tuple[int, int]] = []
        while writer.is_alive():
            before = acknowledged[0]
            seen.append((before, store.script("SELECT count(*) FROM otel_traces")[0][0]))
        writer.join()

        assert seen
        assert [pair for pair in seen if pair[1] < pair[0]] == []
        assert store.script(COUNT) == [(300, 300)]
        store.close()

    def test_every_value_comes_through(self, path, tmp_path):
        """What went through the journal, what was recovered from it and what was inserted at once are the same rows."""
        everything = "SELECT * FROM otel_traces", "SELECT * FROM otel_logs", "SELECT * FROM receipts"
        journaled, at_once = DuckStore(path), DuckStore()
        for store in (journaled, at_once):
            store.commit(spans("a", run_no=store.run_no("r")), logs("b"), [RECEIPT], [])
        killed(
            tmp_path / "k.duckdb",
            "store.commit(spans('a', run_no=store.run_no('r')), logs('b'), [RECEIPT], [])",
        )
        recovered = DuckStore(tmp_path / "k.duckdb")

        for text in everything:
            assert len(at_once.script(text)) == 1
            assert journaled.script(text) == at_once.script(text)
            assert recovered.script(text) == at_once.script(text)
        for store in (journaled, at_once, recovered):
            store.close()


class TestMoves:
    def test_many_rows_are_moved_in_bulk(self, path):
        """Small commits gather; the one with which enough gathered writes all of them into the tables."""
        store = DuckStore(path)
        sizes = []
        for place in range(50):
            put(store, *[f"s{place}-{row}" for row in range(100)])
            sizes.append(journal_of(path).stat().st_size)
        smaller = [place for place in range(1, 50) if sizes[place] < sizes[place - 1]]

        assert smaller == [40]
        assert store.script(COUNT) == [(5_000, 5_000)]
        store.close()

    def test_many_bytes_are_moved(self, path):
        """Few spans with long texts are moved too: what waits is held in memory."""
        store = DuckStore(path)
        for place in range(6):
            put(store, f"s{place}", text="x" * 4_000_000)
            assert journal_of(path).stat().st_size < 24_000_000

        assert store.script(COUNT) == [(6, 6)]
        store.close()

    def test_nothing_is_left_by_a_close(self, path):
        """A closed store is one file, and has everything in its tables."""
        store = DuckStore(path)
        put(store, "a", "b")
        store.close()

        assert [one.name for one in path.parent.iterdir()] == [path.name]
        assert in_tables(path) == ["a", "b"]

    def test_when_nothing_arrives(self, path):
        """An idle store moves what waits."""
        store = DuckStore(path)
        put(store, "a")
        waiting = journal_of(path).stat().st_size
        store.checkpoint()

        assert journal_of(path).stat().st_size < waiting
        store.close()

    def test_in_memory_there_is_no_file(self, tmp_path, monkeypatch):
        """A store in memory writes no file."""
        monkeypatch.chdir(tmp_path)
        store = DuckStore()
        put(store, "a")

        assert store.script(COUNT) == [(1, 1)]
        assert list(tmp_path.iterdir()) == []
        store.close()

    def test_in_memory_small_groups_gather_too(self):
        """A transaction costs milliseconds there as well: it takes one for many groups, and one before anything is read."""
        store = DuckStore()
        waits = []
        for place in range(50):
            put(store, *[f"s{place}-{row}" for row in range(100)])
            waits.append(bool(store._raw))

        assert [place for place, waiting in enumerate(waits) if not waiting] == [40]
        assert store.script(COUNT) == [(5_000, 5_000)]
        assert not store._raw
        store.close()


@pytest.mark.parametrize("seed", range(30))
def test_at_every_write_that_fails(path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any system call fails, or writes a part only: what was acknowledged is read after a kill at any time, and nothing is damaged."""
    chance, pwrite = random.Random(seed), os.pwrite
    failing = False

    def at_times(call: Callable[..., int]) -> Callable[..., int]:
        def wrapped(*args: object) -> int:
            if failing and chance.random() < 0.3:
                if call is pwrite and chance.random() < 0.7:
                    file, data, place = args
                    return pwrite(file, bytes(data)[: chance.randrange(1, len(data) + 1)], place)
                raise OSError(chance.choice([errno.ENOSPC, errno.EIO, errno.EDQUOT]), "injected")
            return call(*args)

        return wrapped

    monkeypatch.setattr(journal, "_sync", at_times(journal._sync))
    monkeypatch.setattr(os, "ftruncate", at_times(os.ftruncate))
    monkeypatch.setattr(os, "pwrite", at_times(pwrite))
    writing, moved, acknowledged = journal.Journal(str(path)), 0, 0
    for _ in range(60):
        if chance.random() < 0.1:  # what the journal holds is in the tables
            moved = acknowledged
            writing.clear()
        failing = chance.random() < 0.7
        text = "v" * chance.choice([1, 100, 5_000])
        group = journal.Group([], spans(f"s{acknowledged}", text=text), LogBatch(), [])
        with contextlib.suppress(StoreError):
            writing.append("store", acknowledged + 1, group)
            acknowledged += 1
        failing = False
        read = {number for number, _ in journal.Journal(str(path)).groups("store", moved) if number > moved}

        assert read >= set(range(moved + 1, acknowledged + 1))
        assert read <= set(range(moved + 1, acknowledged + 2))
    writing.close()


class TestKilled:
    def test_nothing_acknowledged_is_lost(self, path):
        """After ``kill -9`` the next to open the store moves what waited, with the runs it belongs to."""
        killed(path, "put(store, 'a', run='one'); put(store, 'b', 'c', run='two')")
        assert journal_of(path).exists()
        began = time.process_time()
        store = DuckStore(path)
        seconds = time.process_time() - began

        assert seconds < 1
        assert store.run_ids() == ["one", "two"]
        assert store.script(COUNT) == [(3, 3)]
        assert store.run_no("three") == 3
        assert not journal_of(path).exists()
        store.close()

    def test_most_that_can_wait_is_recovered_in_time(self, path):
        """The largest journal of ordinary spans is moved in the second in which a store opens."""
        killed(path, "for n in range(8): put(store, *[f's{n}-{row}' for row in range(500)], text='x' * 2_000)")
        began = time.process_time()
        store = DuckStore(path)
        seconds = time.process_time() - began

        assert seconds < 1
        assert store.script(COUNT) == [(4_000, 4_000)]
        store.close()

    def test_before_the_journal_was_cleared(self, path):
        """Killed between the move and the end of the journal: what was moved is passed over."""
        killed(
            path,
            "put(store, 'a')\n"
            "before = journal_of(path).read_bytes()\n"
            "store.script('SELECT 1')\n"
            "journal_of(path).write_bytes(before)",
        )
        store = DuckStore(path)
        put(store, "b")

        assert store.script(COUNT) == [(2, 2)]
        store.close()

    @pytest.mark.parametrize("damage", ["cut", "changed", "zeros"])
    def test_in_the_middle_of_a_group(self, path, damage):
        """A group that was not written whole was never acknowledged; those before it are kept."""
        killed(path, "put(store, 'a'); put(store, 'b')")
        data = journal_of(path).read_bytes()
        last = begins(data)[-1]
        left = {"cut": data[:-3], "changed": data[:-3] + b"???", "zeros": data[:last] + bytes(len(data) - last)}
        journal_of(path).write_bytes(left[damage])
        store = DuckStore(path)

        assert store.script('SELECT "SpanId" FROM otel_traces') == [("a",)]
        store.close()

    @pytest.mark.parametrize("where", ["number", "length", "checksum", "text", "all of it"])
    @pytest.mark.parametrize("number", [1, 2, 300])
    @pytest.mark.full
    def test_damage_before_a_later_group(self, path, number, where):
        """A group behind which another stands was acknowledged: when it cannot be read, it is neither passed over nor removed."""
        killed(path, "for n in range(302): put(store, f's{n}')")
        data = bytearray(journal_of(path).read_bytes())
        begin, end = begins(data)[number - 1 : number + 1]
        at = {"number": begin, "length": begin + 10, "checksum": begin + 12, "text": begin + 40}.get(where)
        if at is None:
            data[begin:end] = bytes(end - begin)
        else:
            data[at] ^= 0xFF
        journal_of(path).write_bytes(data)

        with pytest.raises(StoreError, match=r"journal' is damaged: the acknowledged spans in it"):
            DuckStore(path)
        assert journal_of(path).read_bytes() == data
        journal_of(path).unlink()
        DuckStore(path).close()

    def test_in_the_first_line(self, path):
        """A journal without its first line holds nothing."""
        DuckStore(path).close()
        journal_of(path).write_bytes(b"clawtrace jou")
        store = DuckStore(path)
        put(store, "a")

        assert store.script(COUNT) == [(1, 1)]
        store.close()

    def test_the_journal_of_another_store(self, path, tmp_path):
        """A journal next to the wrong store is neither read nor removed: the message names it."""
        killed(path, "put(store, 'a')")
        other = tmp_path / "other.duckdb"
        DuckStore(other).close()
        journal_of(path).rename(journal_of(other))

        with pytest.raises(StoreError, match=r"other\.duckdb\.journal.* put that store back, or remove this file"):
            DuckStore(other)
        assert journal_of(other).exists()

        journal_of(other).rename(journal_of(path))
        store = DuckStore(path)
        assert store.script(COUNT) == [(1, 1)]
        store.close()


class TestRefusals:
    BROKEN: ClassVar[dict[str, Callable[[SpanBatch], object]]] = {
        "a key twice": lambda batch: batch.attributes.keys.__setitem__(0, "l"),
        "offsets that do not fit": lambda batch: batch.attributes.offsets.__setitem__(-1, 10**6),
        "a column that is too short": lambda batch: batch.name.pop(),
        "no number": lambda batch: batch.run_no.__setitem__(0, None),
        "a number out of range": lambda batch: batch.start_ns.__setitem__(0, 2**64),
        "half of a character": lambda batch: batch.name.__setitem__(0, "\ud800"),
    }

    @pytest.mark.parametrize("how", BROKEN)
    def test_before_the_answer(self, path, how):
        """What the tables would refuse is refused before it is acknowledged, and spoils nothing."""
        store = DuckStore(path)
        broken = spans("bad", run_no=store.run_no("r"))
        self.BROKEN[how](broken)
        with pytest.raises(StoreError):
            store.commit(broken, LogBatch(), [RECEIPT], [])
        put(store, "good")

        assert store.script('SELECT "SpanId" FROM otel_traces') == [("good",)]
        assert store.script("SELECT count(*) FROM receipts") == [(1,)]
        store.close()

    FULL = """
put(store, "a", text="x" * 100_000)
store.script("SELECT 1")
room = path.with_name(path.name + ".wal").stat().st_size + 50_000
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
put(store, "b", text="x" * 100_000)
for ask in (lambda: store.script("SELECT 1"), lambda: store.ask_user("SELECT 1"), store.checkpoint):
    with pytest.raises(StoreError, match="cannot write to the store"):
        ask()
with pytest.raises(StoreError, match="files may not grow"):
    put(store, "lost", text="x" * 100_000)
put(store, "c")
"""

    def test_the_disk_is_full_when_rows_are_moved(self, path):
        """Questions are refused, not answered without those rows; nothing of the journal is lost."""
        killed(path, self.FULL)
        store = DuckStore(path)

        assert store.script('SELECT "SpanId" FROM otel_traces ORDER BY 1') == [("a",), ("b",), ("c",)]
        assert store.script("SELECT count(*) FROM receipts") == [(3,)]
        store.close()

    def test_once_there_is_room_again(self, path):
        """The same process moves what waited as soon as it can."""
        lift = "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        killed(path, f"{self.FULL}\n{lift}put(store, 'd')\nassert store.script(COUNT) == [(4, 4)]\nstore.close()")

        assert in_tables(path) == ["a", "b", "c", "d"]
        assert not journal_of(path).exists()


def test_the_log_that_a_killed_process_leaves_is_bounded(tmp_path, monkeypatch) -> None:
    """However much arrives without a pause: what is replayed when the store is opened again decides how long that takes."""
    bound = 4 << 20
    monkeypatch.setattr("clawtrace.store.files.owner.LOG_BYTES", bound)
    path = tmp_path / "spans.duckdb"
    log = Path(f"{path}.wal")
    store, sizes = DuckStore(path), []
    for number in range(16):
        batch = spans(*(f"{number}.{place}" for place in range(1_024)), text="x" * 500)
        store.commit(batch, LogBatch(), [], [])
        sizes.append(log.stat().st_size if log.exists() else 0)
    group = sizes[0]

    assert group * len(sizes) > 2 * bound
    assert max(sizes) <= bound + group
    assert store.script(COUNT) == [(16_384, 16_384)]
    store.close()

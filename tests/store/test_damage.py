"""A damaged store: said in words, left as it is, and what can be read of it is saved into a new one."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from tests.store.raw.test_journal import journal_of, put

from clawtrace.cli.main import cli
from clawtrace.errors import InputError, StoreDamagedError, StoreError, StoreLockedError, StoreSchemaError
from clawtrace.model.query import Query
from clawtrace.model.run import RunRecord
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.salvage import salvage

pytestmark = pytest.mark.full

KILLED = """
import os, sys
from tests.store.test_damage import fill
fill(sys.argv[1])
os._exit(0)
"""


def fill(path: str) -> None:
    """Open a store and leave something in its log and something in its journal."""
    store = DuckStore(path)
    for number in range(3):
        store.put_record(RunRecord(f"log{number}", "case"))
    for number in range(3):
        put(store, f"{number:016x}", run=f"journal{number}")


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 1 500 spans of one run in its file, whose last process was killed."""
    path = tmp_path_factory.mktemp("left") / "spans.duckdb"
    store = DuckStore(path)
    for start in range(0, 1_500, 500):
        put(store, *(f"{number:016x}" for number in range(start, start + 500)), run="file", text=os.urandom(300).hex())
    store.close()
    subprocess.run([sys.executable, "-c", KILLED, path], check=True)
    return path


@pytest.fixture
def path(left: Path, tmp_path: Path) -> Path:
    """A copy of that store."""
    for file in left.parent.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path / left.name


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x5A]) + content[place + 1 :]


def damaged(file: Path, change: Callable[[bytes], bytes]) -> None:
    file.write_bytes(change(file.read_bytes()))


def newer(content: bytes) -> bytes:
    """The content with another storage version, and the checksum that DuckDB's message says would be right."""
    content = content[:12] + (200).to_bytes(8, "little") + content[20:]
    Path("newer.duckdb").write_bytes(content)
    with pytest.raises(duckdb.Error) as refused:
        duckdb.connect("newer.duckdb")
    computed = re.search(r"computed checksum (\d+)", str(refused.value))
    assert computed is not None
    return int(computed[1]).to_bytes(8, "little") + content[8:]


FORMS: dict[str, tuple[str, Callable[[bytes], bytes], type[StoreError], str]] = {
    "empty": ("", lambda _: b"", StoreDamagedError, "spans.duckdb' is empty: name another file with --store, put a copy"),
    "text": ("", lambda _: b"hello\n" * 3_000, StoreDamagedError, "is not a DuckDB file, or its beginning is damaged"),
    "cut in its header": ("", lambda old: old[:6_000], StoreDamagedError, "is damaged: put a copy .* `clawtrace store salvage"),
    "header": ("", lambda old: flipped(old, 100), StoreDamagedError, "is damaged: put a copy of it back, move it away"),
    "catalog": ("", lambda old: flipped(old, 12_400), StoreDamagedError, "is damaged: put a copy of it back, move it away"),
    "newer": ("", newer, StoreSchemaError, "was written by a newer DuckDB than this one: `pip install --upgrade duckdb`"),
    "log": (".wal", lambda old: flipped(old, len(old) // 2), StoreDamagedError, "The log is damaged: put a copy of it back"),
    "type in the log": (".wal", lambda old: flipped(old, 2), StoreDamagedError, "The log is damaged: put a copy of it back"),
    "journal": (".journal", lambda old: flipped(old, len(old) // 2), StoreDamagedError, "journal' is damaged: .*salvage"),
    "no journal at all": (".journal", lambda _: b"garbage", StoreError, "journal' holds spans that another store"),
}  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize("form", FORMS)
def test_what_is_damaged_is_named_and_left(path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What, where, what to do; no file is changed."""
    monkeypatch.chdir(path.parent)
    suffix, change, kind, words = FORMS[form]
    damaged(path.with_name(path.name + suffix), change)
    before = {file: file.read_bytes() for file in path.parent.iterdir()}

    with pytest.raises(kind, match=words) as refused:
        DuckStore(path)

    assert str(path) in str(refused.value)
    if suffix == ".journal":  # a log that is whole may have gone into the file before the journal was read
        before = {journal_of(path): before[journal_of(path)]}
    assert {file: file.read_bytes() for file in before} == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "SELECT 1 FROM runs"],
        ["inspect"],
        ["eval", "--assertions", "checks.yaml"],
        ["serve", "--grpc-port", "0", "--http-port", "0"],
        ["runs", "list"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_call_it_the_users_error(path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, and the exit code of a wrong input."""
    monkeypatch.chdir(path.parent)
    Path("checks.yaml").write_text("assertions:\n- {type: no_loops, max_repeats: 3}\n")
    damaged(path, lambda old: flipped(old, 100))

    said = CliRunner().invoke(cli, [*arguments, "--store", "spans.duckdb"])

    assert said.exit_code == 2
    assert re.fullmatch(r"error: .*salvage spans\.duckdb -o NEW`\.\n", said.stderr)


def test_a_log_that_is_taken_for_none_is_kept(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """DuckDB passes over a log whose first byte is wrong, and writes over it."""
    log = path.with_name("spans.duckdb.wal")
    damaged(log, lambda old: flipped(old, 0))
    content = log.read_bytes()
    with caplog.at_level(logging.WARNING):
        DuckStore(path).close()

    assert path.with_name("spans.duckdb.wal.unread").read_bytes() == content
    assert "no transaction could be read from" in caplog.text


def test_a_whole_log_is_not_kept(path: Path) -> None:
    DuckStore(path).close()

    assert [file.name for file in path.parent.iterdir()] == ["spans.duckdb"]


class TestSalvage:
    def test_of_a_whole_store_loses_nothing(self, path: Path) -> None:
        before = {file: file.read_bytes() for file in path.parent.iterdir()}
        new = path.with_name("new.duckdb")
        found = salvage(path, new)
        store = DuckStore(new)

        assert (found.lost, found.incomplete, found.runs) == ([], 0, 7)
        assert found.rows["otel_traces"] == (1_500, 0)
        assert store.ask(Query("SELECT count(*) FROM otel_traces")).rows == [(1_503,)]
        assert store.record("log2") == RunRecord("log2", "case")
        assert {file: file.read_bytes() for file in before} == before
        store.close()

    def test_of_a_damaged_block_keeps_the_rest(self, tmp_path: Path) -> None:
        """Rows of which one value cannot be read are lost, and their runs are incomplete; the others are not."""
        path, new = tmp_path / "spans.duckdb", tmp_path / "new.duckdb"
        DuckStore(path).close()
        with duckdb.connect(str(path), config={"force_compression": "zstd"}) as db:
            db.execute("INSERT INTO run_numbers SELECT i, 'r' || i, false FROM range(1, 61) t(i)")
            db.execute(
                "INSERT INTO otel_traces BY NAME SELECT 1 + i // 1000 AS run_no, 's' || i AS \"SpanId\", "
                "MAP {'k': sha256(i::VARCHAR) || sha256((-i)::VARCHAR)} AS \"SpanAttributes\" FROM range(60_000) t(i)"
            )
        damaged(path, lambda old: flipped(old, len(old) // 2))
        found = salvage(path, new)
        rows, lost = found.rows["otel_traces"]
        store = DuckStore(new)
        marked = store.script("SELECT run_no, refused FROM receipts ORDER BY run_no")
        left = dict(store.script("SELECT run_no, count(*) FROM otel_traces GROUP BY run_no"))

        assert rows + lost == 60_000
        assert 0 < lost < 30_000
        assert found.incomplete == len(marked) < 31
        assert dict(marked) == {run: 1_000 - left.get(run, 0) for run in range(1, 61) if left.get(run, 0) < 1_000}
        store.close()

    @pytest.mark.parametrize(
        ("suffix", "place", "lost", "spans", "runs"),
        [
            ("", 12_400, "the file cannot be opened", 3, 3),
            (".wal", 0, "no transaction could be read from its log", 1_503, 4),
            (".wal", -100, "its log `spans.duckdb.wal` cannot be read from byte", 1_503, 6),
            (".journal", -3_000, "a part of `spans.duckdb.journal` cannot be read", 1_502, 6),
        ],
    )
    def test_what_else_is_lost(self, path: Path, suffix: str, place: int, lost: str, spans: int, runs: int) -> None:
        """It is said; every run may have had it, so that none is complete."""
        damaged(path.with_name(path.name + suffix), lambda old: flipped(old, place % len(old)))
        new = path.with_name("new.duckdb")
        found = salvage(path, new)
        store = DuckStore(new)

        assert len(found.lost) == 1
        assert found.lost[0].startswith(lost)
        assert store.ask(Query("SELECT count(*) FROM otel_traces")).rows == [(spans,)]
        assert found.runs == found.incomplete >= runs
        assert store.script("SELECT count(DISTINCT run_no) FROM receipts WHERE refused > 0") == [(found.runs,)]
        store.close()

    def test_writes_over_nothing(self, path: Path) -> None:
        path.with_name("new.duckdb").write_text("mine")
        with pytest.raises(InputError, match="is there already"):
            salvage(path, path.with_name("new.duckdb"))

        assert path.with_name("new.duckdb").read_text() == "mine"

    def test_of_a_store_that_is_held(self, path: Path) -> None:
        code = "import sys; from clawtrace.store.duckdb import DuckStore; s = DuckStore(sys.argv[1]); print(); sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder:
            assert holder.stdout is not None
            holder.stdout.readline()
            with pytest.raises(StoreLockedError, match=str(holder.pid)):
                salvage(path, path.with_name("new.duckdb"))
            holder.communicate()

    def test_the_command_says_what_is_lost(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(path.parent)
        arguments = ["store", "salvage", "spans.duckdb", "-o"]
        whole = CliRunner().invoke(cli, [*arguments, "a.duckdb"])
        damaged(journal_of(path), lambda old: flipped(old, len(old) // 2))
        lossy = CliRunner().invoke(cli, [*arguments, "b.duckdb"])
        damaged(path, lambda _: b"")
        damaged(journal_of(path), lambda _: b"")
        nothing = CliRunner().invoke(cli, [*arguments, "c.duckdb"])

        assert (whole.exit_code, lossy.exit_code, nothing.exit_code) == (0, 1, 2)
        assert "otel_traces: 1500 rows\n" in whole.stdout
        assert lossy.stdout.endswith(
            "lost: a part of `spans.duckdb.journal` cannot be read\n"
            "'b.duckdb' has 6 runs, 6 of them incomplete through the damage.\n"
        )
        assert "nothing could be read" in nothing.stderr
        assert not Path("c.duckdb").exists()


def test_a_recording_is_no_store(tmp_path: Path) -> None:
    """DuckDB reads such a file into a database in memory, which keeps nothing."""
    recording = tmp_path / "t.json"
    recording.write_text('{"resourceSpans": []}')

    with pytest.raises(StoreSchemaError, match="a recording is given with --traces"):
        DuckStore(recording)

    for _ in range(2):
        DuckStore(tmp_path / "new.json").close()

"""The holder of a store: named next to it, recognised when it is stale, and named when waiting was in vain."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clawtrace.errors import StoreError, StoreLockedError
from clawtrace.session.session import Session
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.files.owner import Owner, connect, owner_file, patiently, read_owner, remove_owner, write_owner

HOLD = """
import sys
from clawtrace.store.duckdb import DuckStore
store = DuckStore(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
store.close()
"""


@contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Have another process hold the store until its standard input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        yield holder
        holder.communicate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spans.duckdb"


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


class TestFile:
    def test_it_comes_back_and_is_the_users_alone(self, path) -> None:
        """Mode 0600: the token in it opens the store to every reader of the file."""
        owner = Owner("http://127.0.0.1:1", "t", os.getpid())
        write_owner(path, owner)

        assert read_owner(path) == owner
        assert stat.S_IMODE(owner_file(path).stat().st_mode) == 0o600
        assert [one.name for one in path.parent.iterdir()] == ["spans.duckdb.owner"]

    def test_a_store_behind_a_link_has_one_owner_file(self, path, tmp_path) -> None:
        (tmp_path / "elsewhere").mkdir()
        link = tmp_path / "elsewhere" / "link.duckdb"
        link.symlink_to(path)
        write_owner(link, Owner("http://127.0.0.1:1", "t", os.getpid()))

        assert read_owner(path) is not None
        remove_owner(owner_file(path))
        assert read_owner(link) is None

    def test_the_file_of_a_dead_process_is_passed_over_and_replaced(self, path, dead) -> None:
        write_owner(path, Owner("http://127.0.0.1:1", "old", dead))
        assert read_owner(path) is None

        with Session.open(path, receive=True) as session:
            owner = read_owner(path)
            assert owner is not None
            assert (owner.address, owner.pid) == (session.endpoints.http, os.getpid())
        assert not owner_file(path).exists()

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"address": "a", "token": "t", "pid": "x"}', '{"pid": 0}'])
    def test_what_is_no_owner_file_is_passed_over(self, path, text) -> None:
        owner_file(path).write_text(text)

        assert read_owner(path) is None

    def test_only_a_receiver_with_a_file_writes_one(self, path, tmp_path) -> None:
        """A store that is only read has no port to be asked on; one in memory has no file to be found by."""
        with Session.open(path), Session.open(receive=True):
            assert not list(tmp_path.glob("*.owner"))

    def test_a_file_that_cannot_be_written(self, path) -> None:
        """No process could find the owner: the store is not opened as if all were well, and nothing is left behind."""
        owner_file(path).mkdir()
        with pytest.raises(StoreError, match=r"spans\.duckdb\.owner"):
            Session.open(path, receive=True)

        assert not list(path.parent.glob(".*"))
        DuckStore(path, patience_s=0).close()


class TestLock:
    def test_a_lock_that_is_let_go_in_time_is_waited_for(self, path) -> None:
        """The first try meets the lock, the holder leaves, a later try has the store."""
        refusals = 0
        with held(path) as holder:

            def attempt() -> None:
                nonlocal refusals
                try:
                    connect(str(path)).close()
                except StoreLockedError:
                    refusals += 1
                    if holder.stdin is not None and not holder.stdin.closed:
                        holder.stdin.close()
                    raise

            patiently(attempt, 60)
            holder.wait()
            holder.stdin = None

        assert refusals >= 1

    def test_a_held_store_names_process_and_command(self, path) -> None:
        """What holds it, and what to do, in one sentence."""
        with held(path) as holder, pytest.raises(StoreLockedError) as caught:
            DuckStore(path, patience_s=0)
        text = str(caught.value)

        assert f"open in process {holder.pid} (`{sys.executable} -c" in text
        assert text.endswith(
            ": wait until it has ended, or end it. A running `clawtrace serve` answers with --server in place of --store."
        )

    def test_patience_ends(self, path) -> None:
        """It is tried for as long as was said, not once and not for ever."""
        with held(path):
            begun = time.monotonic()
            with pytest.raises(StoreLockedError):
                DuckStore(path, patience_s=0.3)

        assert time.monotonic() - begun >= 0.3

    def test_a_path_with_lock_in_it_is_not_taken_for_a_lock(self, tmp_path) -> None:
        """Any other failure is reported at once, by its own name."""
        with pytest.raises(StoreError, match="cannot open") as caught:
            DuckStore(tmp_path / "no lock here" / "spans.duckdb", patience_s=60)

        assert not isinstance(caught.value, StoreLockedError)


def test_an_idle_store_moves_its_log_into_the_file(path, monkeypatch) -> None:
    """What a later open would have to replay is gone from the log, and nothing of it is lost."""
    log = Path(f"{path}.wal")
    store = DuckStore(path)
    store.script("CREATE TABLE filler AS SELECT range AS n, hash(range) AS h FROM range(10)")
    store.checkpoint()
    assert log.stat().st_size > 0, "a short log is left as it is"

    monkeypatch.setattr("clawtrace.store.duckdb._CHECKPOINT_BYTES", 1)
    store.script("BEGIN")
    store.script("INSERT INTO filler VALUES (99, 99)")
    store.checkpoint()  # facts are being written: later
    store.script("COMMIT")
    store.checkpoint()

    assert not log.exists() or log.stat().st_size == 0
    assert store.script("SELECT count(*) FROM filler") == [(11,)]
    store.close()


def test_json_of_the_owner_file(path) -> None:
    """Other programs may read it: these keys are a contract."""
    write_owner(path, Owner("http://127.0.0.1:1", "t", 7))

    assert json.loads(owner_file(path).read_text()) == {"address": "http://127.0.0.1:1", "token": "t", "pid": 7}

"""The embedded store: durable before it returns, read-only for queries, honest about foreign files."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

from clawtrace.errors import QueryError, StoreError, StoreLockedError, StoreSchemaError
from clawtrace.model.query import BoundRelation, Query
from clawtrace.model.raw import LogBatch, Receipt, SpanBatch
from clawtrace.model.relations import RELATIONS
from clawtrace.model.run import RunRecord
from clawtrace.session.new_receiver import _announced
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.files.owner import connect
from clawtrace.support.parquet_table import memory_database

TRACE = "0" * 31 + "1"


def batch(run_no: int, count: int = 1, start_ns: int = 10, end_ns: int = 20, rule: str = "resource") -> SpanBatch:
    spans = SpanBatch()
    for n in range(count):
        spans.trace_id.append(TRACE)
        spans.span_id.append(f"{n + 1:016x}")
        for column in (spans.parent_span_id, spans.trace_state, spans.scope_version, spans.status_message):
            column.append("")
        spans.name.append("chat")
        spans.kind.append("Client")
        spans.service.append("agent")
        spans.scope.append("scope")
        spans.status_code.append("Unset")
        spans.attributes.keys.extend(["gen_ai.operation.name", "n"])
        spans.attributes.values.extend(["chat", str(n)])
        spans.attributes.offsets.append(len(spans.attributes.keys))
        spans.attribute_types.append("si")
        spans.resource_types.append("")
        spans.resource.offsets.append(0)
        spans.scope_attributes.offsets.append(0)
        spans.start_ns.append(start_ns)
        spans.end_ns.append(end_ns)
        for column in (
            spans.event_times,
            spans.event_names,
            spans.link_trace_ids,
            spans.link_span_ids,
            spans.link_states,
        ):
            column.offsets.append(0)
        spans.event_attributes.offsets.append(0)
        spans.link_attributes.offsets.append(0)
        for column in (spans.flags, spans.dropped_attributes, spans.dropped_events, spans.dropped_links):
            column.append(0)
        spans.arrival_ns.append(1)
        spans.request_no.append(1)
        spans.protocol.append("grpc")
        spans.run_no.append(run_no)
        spans.run_rule.append(rule)
    return spans


@pytest.fixture
def store(tmp_path: Path):
    with_file = DuckStore(tmp_path / "spans.duckdb")
    yield with_file
    with_file.close()


class TestCommit:
    def test_raw_columns_come_back_as_sent(self, store: DuckStore) -> None:
        store.commit(batch(store.run_no("r")), LogBatch(), [Receipt(1, 1, 1, "grpc", "traces", accepted=1)], [])
        row = store.script('SELECT "SpanId", "Duration", "SpanAttributes"[\'n\'], run_no FROM otel_traces')

        assert row == [("0000000000000001", 10, "0", 1)]

    def test_the_largest_time_saturates_and_is_kept(self, store: DuckStore) -> None:
        """Timestamp is derived and saturates; the unsigned original stays what was sent."""
        largest = 2**64 - 1
        store.commit(batch(store.run_no("r"), start_ns=largest, end_ns=largest), LogBatch(), [], [])

        assert store.script("SELECT start_ns, end_ns FROM otel_traces") == [(largest, largest)]

    def test_adoption_moves_only_what_named_no_run(self, store: DuckStore) -> None:
        alone, run = store.run_no(TRACE), store.run_no("r")
        store.commit(batch(alone, rule="none"), LogBatch(), [], [])
        store.commit(batch(run), LogBatch(), [], [(TRACE, run, "trace")])

        assert store.script("SELECT run_no, run_rule FROM otel_traces ORDER BY run_rule") == [
            (run, "resource"),
            (run, "trace"),
        ]

    def test_the_run_that_stood_for_an_adopted_trace_is_retired(self, tmp_path: Path) -> None:
        """Its number, the last one given, is never used again; what was counted for it counts for the adopter."""
        path = tmp_path / "spans.duckdb"
        store = DuckStore(path)
        run, alone = store.run_no("r"), store.run_no(TRACE)
        receipts = [Receipt(alone, 1, 1, "grpc", "traces", accepted=1, rejected=2)]
        store.commit(batch(alone, rule="none"), LogBatch(), receipts, [])
        store.commit(SpanBatch(), LogBatch(), [], [(TRACE, run, "given")])
        retired = store.take_retired()
        listed = store.run_ids(), store.known_runs()[0]
        store.close()
        again = DuckStore(path)

        assert (listed, retired) == ((["r"], [("r", run)]), [TRACE])
        assert again.script("SELECT run_no, rejected FROM receipts") == [(run, 2)]
        assert again.run_ids() == ["r"]
        assert again.run_no(TRACE) == alone + 1
        again.close()

    def test_a_run_that_has_more_than_the_adopted_trace_stays(self, store: DuckStore) -> None:
        """A run may be called like a trace: announced, or with spans of its own, it is not retired."""
        run, announced, named = store.run_no("r"), store.run_no("a" * 32), store.run_no(TRACE)
        store.put_record(RunRecord("a" * 32, "case"))
        store.commit(batch(named), LogBatch(), [], [])
        store.commit(SpanBatch(), LogBatch(), [], [("a" * 32, run, "trace"), (TRACE, run, "trace")])

        assert store.known_runs()[0] == [("r", run), ("a" * 32, announced), (TRACE, named)]

    def test_announced_sessions_outlive_the_process(self, tmp_path: Path) -> None:
        path = tmp_path / "spans.duckdb"
        store = DuckStore(path)
        store.put_record(RunRecord("none", "case"))
        store.put_record(RunRecord("two", "case", session_ids=("s1", 's"2')))
        store.close()
        again = DuckStore(path)

        assert _announced(again)[0] == [("s1", 2), ('s"2', 2)]
        assert again.record("two") == RunRecord("two", "case", session_ids=("s1", 's"2'))
        again.close()

    def test_a_failed_commit_writes_nothing(self, store: DuckStore) -> None:
        broken = batch(store.run_no("r"))
        broken.run_no[0] = None  # type: ignore[call-overload]
        broken.attributes.offsets[-1] = 10**6
        with pytest.raises((StoreError, ValueError)):
            store.commit(broken, LogBatch(), [], [])

        assert store.script("SELECT count(*) FROM otel_traces") == [(0,)]
        store.commit(batch(store.run_no("r")), LogBatch(), [], [])
        assert store.script("SELECT count(*) FROM otel_traces") == [(1,)]

    def test_what_commit_returned_for_survives_kill_9(self, tmp_path: Path) -> None:
        """A process that is killed the instant after a commit has lost nothing of it."""
        path = tmp_path / "spans.duckdb"
        code = (
            "import sys, os, signal; sys.path.insert(0, sys.argv[2])\n"
            "from test_duckdb import *\n"
            "store = DuckStore(sys.argv[1])\n"
            "for n in range(3):\n"
            "    store.commit(batch(store.run_no(f'r{n}'), 50), LogBatch(), [], [])\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, str(path), str(Path(__file__).parent)], check=False)

        assert done.returncode == -signal.SIGKILL
        store = DuckStore(path)
        assert store.script("SELECT count(*) FROM otel_traces") == [(150,)]
        assert store.run_ids() == ["r0", "r1", "r2"]
        store.close()

    def test_commits_and_questions_side_by_side(self, store: DuckStore) -> None:
        """The writer's thread and the engine's do not disturb each other."""
        failures: list[BaseException] = []

        def write() -> None:
            try:
                for n in range(20):
                    store.commit(batch(store.run_no(f"r{n}"), 20), LogBatch(), [], [])
            except BaseException as error:
                failures.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        while writer.is_alive():
            assert store.ask(Query("SELECT count(*) AS n FROM otel_traces")).rows[0][0] % 20 == 0
        writer.join()

        assert failures == []
        assert store.script("SELECT count(*) FROM otel_traces") == [(400,)]


def test_an_id_that_no_commit_could_write_is_refused(store: DuckStore) -> None:
    """Half a character in the id of one run would fail every commit from then on."""
    with pytest.raises(StoreError, match="no valid Unicode"):
        store.run_no("\ud800")
    store.commit(batch(store.run_no("r1")), LogBatch(), [], [])

    assert store.run_ids() == ["r1"]


class TestRelations:
    def test_the_store_has_each_relation_with_exactly_its_columns(self, store: DuckStore) -> None:
        types = {"VARCHAR": "text", "BIGINT": "bigint", "DOUBLE": "double", "BOOLEAN": "boolean"}
        found = {name: store.script(f"DESCRIBE SELECT * FROM {name}") for name in RELATIONS}

        assert {name: [(row[0], types[row[1]]) for row in rows] for name, rows in found.items()} == {
            name: [(column.name, column.type) for column in relation.columns] for name, relation in RELATIONS.items()
        }


class TestQueries:
    def test_parameters_and_bound_relations(self, store: DuckStore) -> None:
        store.select_runs(["r1"])
        query = Query(
            "SELECT s.run_id AS run_id, b.value AS v, ':not a marker' AS t FROM selected_runs AS s "
            "CROSS JOIN names AS b WHERE b.item >= :least",
            {"least": 1},
        )
        answer = store.ask(query, [BoundRelation("names", (("a", 0), ("b", 1)))])

        assert answer.dicts() == [{"run_id": "r1", "v": "b", "t": ":not a marker"}]

    @pytest.mark.parametrize(
        "sql",
        [
            "DROP TABLE runs",
            "INSERT INTO runs (run_id) VALUES ('x')",
            "SELECT 1; SELECT 2",
            "SELECT * FROM read_text('/etc/hostname')",
            "SELECT * FROM '/etc/hostname'",
            "COPY runs TO '/tmp/x.csv'",
            "ATTACH '/tmp/x.duckdb'",
            "SET enable_external_access = true",
            "SELECT * FROM store",
            "SELEC 1",
            "",
        ],
    )
    def test_a_users_query_can_only_read_the_store(self, store: DuckStore, sql: str) -> None:
        with pytest.raises(QueryError):
            store.ask_user(sql)


class TestFiles:
    def test_another_databases_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "other.duckdb"
        with duckdb.connect(str(path)) as db:
            db.execute("CREATE TABLE t (a INT)")
        with pytest.raises(StoreSchemaError, match="not a clawtrace store"):
            DuckStore(path)

    def test_another_schema_version_is_refused_by_name(self, tmp_path: Path) -> None:
        path = tmp_path / "old.duckdb"
        DuckStore(path).close()
        with duckdb.connect(str(path)) as db:
            db.execute("UPDATE store_meta SET schema_version = 999")
        with pytest.raises(StoreSchemaError, match=r"schema 999.* move it away"):
            DuckStore(path)

    def test_a_text_file_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("hello")
        with pytest.raises(StoreError, match=r"notes\.txt"):
            DuckStore(path)

    def test_a_file_that_is_cut_off(self, tmp_path: Path) -> None:
        """What DuckDB itself says of damage is followed by what to do."""
        path = tmp_path / "cut.duckdb"
        DuckStore(path).close()
        path.write_bytes(path.read_bytes()[:6_000])
        with pytest.raises(StoreError, match=r"cut\.duckdb.*The file is damaged: .* move it away"):
            DuckStore(path)

    def test_an_sqlite_file_is_refused_without_the_network(self, tmp_path: Path, monkeypatch) -> None:
        """DuckDB would fetch an extension that reads it."""
        monkeypatch.setenv("HOME", str(tmp_path))
        path = tmp_path / "other.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE t (a INT)")
        with pytest.raises(
            StoreSchemaError, match=r"other\.sqlite' is the file of another database; name another file"
        ):
            DuckStore(path)

    def test_a_path_that_is_no_utf8(self, tmp_path: Path) -> None:
        """DuckDB takes no such path; the message names it."""
        with pytest.raises(StoreError, match=r"sp\\udce9ns\.duckdb' is not UTF-8"):
            DuckStore(tmp_path / "sp\udce9ns.duckdb")

    def test_the_progress_of_a_long_statement_is_not_shown(self, tmp_path: Path) -> None:
        """It would stand in what a command prints; what asks is a cursor."""
        shown = "SELECT current_setting('enable_progress_bar')"
        for opened in (connect(str(tmp_path / "spans.duckdb")), memory_database()):
            assert opened.execute(shown).fetchone() == opened.cursor().execute(shown).fetchone() == (False,)

    def test_a_held_file_names_its_holder(self, tmp_path: Path) -> None:
        path = tmp_path / "spans.duckdb"
        code = "import sys; from clawtrace.store.duckdb import DuckStore; s = DuckStore(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"open\n"
            with pytest.raises(StoreLockedError, match=str(holder.pid)):
                DuckStore(path, patience_s=0)
            holder.communicate()

    @pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
    def test_a_folder_that_does_not_exist(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="cannot open"):
            DuckStore(tmp_path / "no" / "spans.duckdb")

    def test_attributes_are_compressed_by_zstd_and_relations_are_not(self, tmp_path):
        """What is read rarely is small in the file; the texts that questions compare keep the dictionary they are asked by."""
        path = tmp_path / "spans.duckdb"
        store = DuckStore(path)
        store.commit(batch(store.run_no("r1"), 5_000), LogBatch(), [], [])
        with store.transaction() as db:
            db.execute("INSERT INTO tool_calls (run_id, name) SELECT 'r1', 'tool ' || i % 3 FROM range(5000) t(i)")
        store.close()
        with duckdb.connect(str(path), read_only=True) as stored:
            used = {
                column: stored.execute(
                    f"SELECT DISTINCT compression FROM pragma_storage_info('{table}') "
                    "WHERE column_name = ? AND segment_type = 'VARCHAR'",
                    [column],
                ).fetchall()
                for table, column in (("otel_traces", "SpanAttributes"), ("tool_calls", "name"))
            }

        assert used == {"SpanAttributes": [("ZSTD",)], "name": [("DICT_FSST",)]}

    def test_a_damaged_log_is_named(self, tmp_path: Path) -> None:
        """Nothing of the store is opened without what was acknowledged: what to do is said."""
        store = DuckStore(tmp_path / "spans.duckdb")
        for number in range(100):
            store.put_record(RunRecord(f"r{number}", "case"))
        log = bytearray((tmp_path / "spans.duckdb.wal").read_bytes())
        log[len(log) // 2] ^= 0xFF
        (tmp_path / "copy.duckdb").write_bytes((tmp_path / "spans.duckdb").read_bytes())
        (tmp_path / "copy.duckdb.wal").write_bytes(log)
        store.close()

        with pytest.raises(
            StoreError, match=r"cannot open the store .*copy\.duckdb'.*The log is damaged: put a copy of it back"
        ):
            DuckStore(tmp_path / "copy.duckdb")

    def test_a_damaged_block_is_the_files_fault_and_no_questions(self, tmp_path: Path) -> None:
        """The error names the file: nothing is wrong with the question."""
        path = tmp_path / "spans.duckdb"
        store = DuckStore(path)
        store.commit(batch(store.run_no("r"), 20_000), LogBatch(), [], [])
        store.close()
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
        damaged = DuckStore(path)

        with pytest.raises(StoreError, match=r"cannot read the store .*spans\.duckdb.*Corrupt"):
            damaged.ask(Query("SELECT * FROM otel_traces"))

    @pytest.mark.parametrize(("limit", "groups"), [(64 << 20, [8_000, 4_000]), (0, [2_000] * 6)])
    def test_row_groups_of_small_sessions_are_merged_in_a_small_file(self, tmp_path, monkeypatch, limit, groups):
        """In a large one they stay: to merge them takes as much memory as their rows had before compression."""
        monkeypatch.setattr("clawtrace.store.duckdb._MERGED_BYTES", limit)
        path = tmp_path / "spans.duckdb"
        for number in range(6):
            store = DuckStore(path)
            store.commit(batch(store.run_no(f"r{number}"), 2_000), LogBatch(), [], [])
            store.close()
        with duckdb.connect(str(path), read_only=True) as stored:
            found = stored.execute(
                "SELECT max(count) FROM pragma_storage_info('otel_traces') WHERE column_name = 'run_no' "
                "GROUP BY row_group_id ORDER BY row_group_id"
            ).fetchall()

        assert [count for (count,) in found] == groups


def test_a_loaded_relation_can_grow_and_shrink(store: DuckStore) -> None:
    """Few rows are read in place, many are copied; the name means the newest rows either way."""
    for count in (3, 5_000, 2, 7_000, 0):
        store.load("numbers", {"n": ("bigint", list(range(count)))})

        assert store.script("SELECT count(*), max(n) FROM numbers") == [(count, count - 1 if count else None)]


def test_scores_are_replaced_by_those_that_the_same_asked_for_again(store: DuckStore) -> None:
    row = {"run_id": "r", "asked_by": "judge", "part": "overall", "score": 7.0, "status": "ok"}
    rows = [tuple(row.get(name) for name in RELATIONS["judgements"].column_names)]
    for _ in range(2):
        store.put_judgements("r", "judge", rows)

    assert store.ask_user("SELECT score FROM judgements").dicts() == [{"score": 7.0}]

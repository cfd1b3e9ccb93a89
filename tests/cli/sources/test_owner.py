"""`query` and `inspect` on a store that another process holds: the owner is asked, or the holder is named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawtrace.store.files.owner import Owner, owner_file, read_owner, write_owner

PROGRAM = Path(sys.executable).parent / "clawtrace"

OWNER = """
import sys
from pathlib import Path
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
with Session.open(sys.argv[1], receive=sys.argv[2] == "receive") as session:
    session.load_recordings([Path(sys.argv[3])], Grouping("dir"))
    print(session.run_ids(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "spans.duckdb"


@pytest.fixture
def recorded() -> Path:
    return Path(__file__).parents[2] / "recordings" / "pydantic-ai"


@pytest.fixture
def holder(store: Path, recorded: Path) -> Iterator:
    """Start a process that holds the store, with a receiver or without; ended by closing its standard input."""
    running: list[subprocess.Popen[str]] = []

    def start(kind: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(store), kind, str(recorded)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        assert "one_tool" in process.stdout.readline()
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str]) -> None:
    process.communicate()
    assert process.returncode == 0


SQL = "SELECT run_id, name, n_low AS n, 1.50::DECIMAL(4,2) AS d FROM run_tools ORDER BY run_id, name"


class TestAskedTheOwner:
    @pytest.mark.parametrize("form", ["table", "csv", "json"])
    @pytest.mark.full
    def test_query_prints_the_same_whichever_process_holds_the_store(self, holder, invoke, store, form) -> None:
        """The owner's answer and the file's own are one text."""
        process = holder("receive")
        asked = invoke("query", SQL, "--store", store, "--format", form)
        end(process)
        read = invoke("query", SQL, "--store", store, "--format", form)

        assert (asked.exit_code, asked.stdout, asked.stderr) == (0, read.stdout, read.stderr)
        assert "one_tool" in asked.stdout

    @pytest.mark.parametrize("flags", [[], ["--json"], ["--run-id", "delegation", "--explain"]])
    @pytest.mark.full
    def test_inspect_prints_the_same_whichever_process_holds_the_store(self, holder, invoke, store, flags) -> None:
        process = holder("receive")
        asked = invoke("inspect", "--store", store, *flags)
        end(process)
        read = invoke("inspect", "--store", store, *flags)

        assert (asked.exit_code, asked.stdout, asked.stderr) == (0, read.stdout, "")
        assert "delegation" in asked.stdout

    def test_mistakes_are_the_users_own(self, holder, invoke, store) -> None:
        """Exit 2, with the engine's words and the nearest run, as for a file."""
        holder("receive")
        wrong, unknown = (
            invoke("query", "SELECT nothing FROM spans", "--store", store),
            invoke("inspect", "--store", store, "--run-id", "one_tol"),
        )

        assert (wrong.exit_code, unknown.exit_code) == (2, 2)
        assert "nothing" in wrong.stderr
        assert "  spans(" in wrong.stderr
        assert "Did you mean `one_tool`?" in unknown.stderr

    def test_a_stale_file_misleads_no_command(self, holder, invoke, store) -> None:
        """An owner that was killed leaves its file: the store is opened, and a living process that does not own it is not asked."""
        process = holder("receive")
        stale = read_owner(store)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert stale is not None
        assert owner_file(store).exists()
        assert invoke("query", SQL, "--store", store).exit_code == 0

        write_owner(store, Owner(stale.address, stale.token, os.getpid()))
        assert invoke("query", SQL, "--store", store).exit_code == 0


class TestNoAnswer:
    @pytest.mark.full
    def test_the_holder_is_named_after_five_seconds(self, holder, invoke, store) -> None:
        """A holder without a receiver cannot be asked: exit 4, process and command, what to do; no traceback."""
        process = holder("only open")
        done = invoke("query", SQL, "--store", store)

        assert (done.exit_code, done.stdout) == (4, "")
        assert done.stderr.startswith(
            f"error: the store {str(store)!r} is open in process {process.pid} (`{sys.executable}"
        )
        assert ": wait until it has ended, or end it. " in done.stderr

    @pytest.mark.full
    @pytest.mark.parametrize("kind", ["receive", "only open"])
    def test_adopting_waits_for_the_file_and_names_the_holder(self, holder, invoke, store, kind) -> None:
        """Adopting changes the store, which the owner does for no other process: exit 4, who holds it, what to do."""
        process = holder(kind)
        done = invoke("runs", "adopt", "one_tool", "a" * 32, "--store", store)

        assert (done.exit_code, done.stdout) == (4, "")
        assert f"is open in process {process.pid} (`" in done.stderr
        assert ": wait until it has ended, or end it. " in done.stderr


ASKING_AGENT = """
import os, pathlib, subprocess
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("asking")
with tracer.start_as_current_span("execute_tool search") as tool:
    tool.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"})
provider.force_flush()
(store,) = pathlib.Path(os.environ["OUT"]).rglob("spans.duckdb")
for words in (["query", "SELECT name, closed_by IS NULL AS open FROM tool_calls JOIN runs USING (run_id)", "--json"],
              ["inspect"]):
    subprocess.run([os.environ["PROGRAM"], *words, "--store", store], check=True)
"""


@pytest.mark.full
def test_a_campaign_is_asked_while_it_runs(tmp_path: Path, program) -> None:
    """`clawtrace eval` owns its campaign's store: a command that asks meanwhile sees the run whose agent is still at work."""
    folder = tmp_path / "configs" / "cases" / "asking"
    folder.mkdir(parents=True)
    command = json.dumps([sys.executable, "-c", ASKING_AGENT])
    (folder / "test.yaml").write_text(
        "schema_version: 1\ncase_id: asking\ntitle: asking\n"
        f"runner: {{type: command, command: {command}, pass_env: [OUT, PROGRAM, PYTHONPATH]}}\n"
        "input: {messages: [{role: user, content: go}]}\nassertions:\n  - {type: tool_was_called, tool: search}\n"
    )
    (tmp_path / "configs" / "suites").mkdir()
    (tmp_path / "configs" / "suites" / "s.yaml").write_text(
        "schema_version: 1\nsuite_id: s\ntitle: s\ncase_selection: {include_case_ids: [asking]}\n"
    )
    environment = {"OUT": str(tmp_path / "out"), "PROGRAM": str(PROGRAM)}
    done = program("eval", "--suite", "s", "--out", tmp_path / "out", env=environment)
    (stdout,) = (tmp_path / "out").rglob("stdout*")
    text = stdout.read_text()

    assert done.returncode == 0, done.stdout + done.stderr + text
    assert json.loads(text[: text.index("]") + 1]) == [{"name": "search", "open": True}]
    assert "execute_tool search" in text
    assert "open: more spans may come" in text
    assert not list((tmp_path / "out").rglob("*.owner"))

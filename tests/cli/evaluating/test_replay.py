"""`runner: {type: replay}`: a stored run is judged as another one, with its spans and how it ended (config.md §3)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from clawtrace.session.session import Session

pytestmark = pytest.mark.full

AGENT = Path(__file__).parents[1] / "agent.py"
HEAD = "schema_version: 1\ncase_id: {0}\ntitle: {0}\n"

IN_PROCESS = True


@pytest.fixture
def project(tmp_path: Path):
    """A project with one case that was run: `search` was called, and the agent ended with 3."""

    def write(name: str, text: str) -> None:
        path = tmp_path / "configs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    command = json.dumps([sys.executable, str(AGENT), "search", "exit=3"])
    write("cases/live/test.yaml", HEAD.format("live") + f"runner: {{type: command, command: {command}}}\ninput: {{}}\n")
    for suite_id, case_id in (("first", "live"), ("again", "replayed")):
        write(
            f"suites/{suite_id}.yaml",
            f"schema_version: 1\nsuite_id: {suite_id}\ntitle: S\ncase_selection: {{include_case_ids: [{case_id}]}}\n",
        )
    return write


def replayed(project, store: str, run_id: str) -> None:
    project(
        "cases/replayed/test.yaml",
        HEAD.format("replayed")
        + f"runner: {{type: replay, store: {store}, run_id: {run_id}}}\ninput: {{}}\nassertions:\n"
        "  - {type: tool_was_called, tool: search}\n  - {type: tool_not_invoked, tool: rm}\n"
        "  - {type: agent_exit_code, value: 3}\n",
    )


def test_a_stored_run_is_replayed(project, program, tmp_path):
    """The new run has its own id and case, the stored spans, and the stored exit code."""
    program("eval", "--suite", "first")
    (kept,) = tmp_path.rglob("run.json")
    run_id = json.loads(kept.read_text())["run_id"]
    (store,) = tmp_path.rglob("spans.duckdb")
    replayed(project, f"../../../{store.relative_to(tmp_path)}", run_id)

    done = program("eval", "--suite", "again", "--repeat", "2")
    (report,) = (tmp_path / "outputs/campaigns/again").rglob("report.json")
    (case,) = json.loads(report.read_text())["cases"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert case["case_id"] == "replayed"
    assert [run["repetition"] for run in case["runs"]] == [1, 2]
    assert run_id not in [run["run_id"] for run in case["runs"]]
    assert [run["trace"]["spans"] for run in case["runs"]] == [2, 2]


@pytest.mark.smoke
def test_a_run_that_is_not_there_is_named(project, program, tmp_path):
    """A missing store is a mistake of the case file; a missing run ends that case with a sentence."""
    program("eval", "--suite", "first")
    (store,) = tmp_path.rglob("spans.duckdb")
    replayed(project, f"../../../{store.relative_to(tmp_path)}", "nobody")
    done = program("eval", "--suite", "again")
    assert done.returncode == 4
    assert "has no run 'nobody'; `clawtrace runs` lists its runs" in " ".join(done.stdout.split())
    replayed(project, "absent.duckdb", "nobody")

    done = program("eval", "--suite", "again")
    assert done.returncode == 2
    assert "`runner.store` the store 'absent.duckdb' does not exist next to the case file" in done.stderr


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("", "a replay needs either `traces` or `store` with `run_id`"),
        (", traces: [x], run_id: y, store: z", "a replay needs either `traces` or `store` with `run_id`"),
        (", run_id: y", "`store` and `run_id` belong together: a store, and a run in it"),
    ],
)
def test_a_replay_has_one_source(project, program, settings, sentence):
    """Recorded files or a stored run: neither and both are reported with their place, and nothing starts."""
    project("cases/replayed/test.yaml", HEAD.format("replayed") + f"runner: {{type: replay{settings}}}\ninput: {{}}\n")
    done = program("eval", "--suite", "again")

    assert done.returncode == 2
    assert f"configs/cases/replayed/test.yaml:4:9: `runner` {sentence}" in done.stderr


class TestReuse:
    def test_a_stored_run_is_replayed_once(self, project, program, tmp_path):
        """Its spans and how it ended stand in the campaign; what the replayed run's store holds is what could change it."""
        program("eval", "--suite", "first")
        (store,) = tmp_path.rglob("spans.duckdb")
        (kept,) = store.parent.rglob("run.json")
        replayed(project, f"../../../{store.relative_to(tmp_path)}", json.loads(kept.read_text())["run_id"])
        program("eval", "--suite", "again")

        again = program("eval", "--suite", "again")
        assert again.returncode == 0, again.stdout + again.stderr
        assert "1 reused" in again.stdout
        (file,) = (tmp_path / "outputs/campaigns/again").rglob("run.json")
        assert [json.loads(file.read_text())[key] for key in ("run_status", "exit_code")] == ["failed", 3]

        program("eval", "--suite", "first", "--no-reuse")
        planned = program("eval", "--suite", "again", "--dry-run")
        assert "edited since: the recordings (`../../../outputs/" in planned.stdout

    def test_recordings_are_read_once(self, project, program, tmp_path):
        """By content: a recording of other spans is another run."""
        program("eval", "--suite", "first")
        (store,) = tmp_path.rglob("spans.duckdb")
        (kept,) = store.parent.rglob("run.json")
        run_id = json.loads(kept.read_text())["run_id"]
        program("runs", "export", run_id, "--store", store, "--out", "run.jsonl")
        project(
            "cases/replayed/test.yaml",
            HEAD.format("replayed") + "runner: {type: replay, traces: [../../../run.jsonl]}\ninput: {}\nassertions:\n"
            "  - {type: tool_was_called, tool: search}\n",
        )
        assert "reused" not in program("eval", "--suite", "again").stdout
        assert "1 reused" in program("eval", "--suite", "again").stdout

        (tmp_path / "run.jsonl").write_text((tmp_path / "run.jsonl").read_text().replace("search", "browse"))
        edited = program("eval", "--suite", "again")
        assert edited.returncode == 1
        assert "reused" not in edited.stdout


def test_a_stored_trace_that_was_not_announced_is_replayed_whole(project, program, tmp_path):
    """Its store knows nothing of it but its spans, as of any recording."""
    trace_id = "ab" * 16
    span = Span(trace_id=bytes.fromhex(trace_id), span_id=b"\1" * 8, name="execute_tool search", start_time_unix_nano=1)
    span.end_time_unix_nano = 2
    for key, value in {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}.items():
        span.attributes.add(key=key, value=AnyValue(string_value=value))
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.append(span)
    with Session.open(tmp_path / "stray.duckdb") as session:
        session.take("", request.SerializeToString())
    replayed(project, "../../../stray.duckdb", trace_id)
    done = program("eval", "--suite", "again")
    (report,) = (tmp_path / "outputs/campaigns/again").rglob("report.json")
    (case,) = json.loads(report.read_text())["cases"]

    assert case["runs"][0]["trace"]["closed_by"] == "recording", done.stdout + done.stderr
    assert [one["status"] for one in case["runs"][0]["assertions"]] == ["pass", "pass", "inconclusive"]


def test_a_recording_that_cannot_be_read_breaks_its_own_run(project, program, tmp_path):
    """The store is as good as before: where runner errors stop nothing, the other case is run."""
    project("cases/broken/test.yaml", HEAD.format("broken") + "runner: {type: replay, traces: [x]}\ninput: {}\n")
    project("cases/broken/x", "no recording")
    project(
        "suites/both.yaml",
        "schema_version: 1\nsuite_id: both\ntitle: S\ncase_selection: {include_case_ids: [broken, live]}\n",
    )
    project(
        "run_profiles/further.yaml",
        "schema_version: 1\nrun_profile_id: further\ntitle: P\nexecution_policy: {stop_on_runner_error: false}\n",
    )
    stopped, went_on = (program("eval", "--suite", "both", *more) for more in ((), ("--run-profile", "further")))

    assert (stopped.returncode, went_on.returncode) == (4, 4)
    assert "is not OTLP" in stopped.stdout
    assert "(`stop_on_runner_error`)" in stopped.stdout
    assert "NOT RUN" not in went_on.stdout

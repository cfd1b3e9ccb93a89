"""`runner: {type: replay}`: a stored run is judged as another one, with its spans and how it ended (config.md §3)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

AGENT = Path(__file__).with_name("agent.py")
HEAD = "schema_version: 1\ncase_id: {0}\ntitle: {0}\n"


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


def test_a_run_that_is_not_there_is_named(project, program, tmp_path):
    """A missing store is known before anything starts; a missing run ends that case with a sentence."""
    program("eval", "--suite", "first")
    (store,) = tmp_path.rglob("spans.duckdb")
    replayed(project, f"../../../{store.relative_to(tmp_path)}", "nobody")
    done = program("eval", "--suite", "again")
    assert done.returncode == 4
    assert "has no run 'nobody'; `clawtrace runs` lists its runs" in " ".join(done.stdout.split())
    replayed(project, "absent.duckdb", "nobody")

    done = program("eval", "--suite", "again")
    assert done.returncode == 4
    assert "absent.duckdb' does not exist" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("", "a replay needs either `traces` or `store` with `run_id`"),
        (", traces: [x], run_id: y, store: z", "a replay needs either `traces` or `store` with `run_id`"),
        (", run_id: y", "`store` and `run_id` belong together: which store, and which run in it"),
    ],
)
def test_a_replay_has_one_source(project, program, settings, sentence):
    """Recorded files or a stored run: neither and both are told with their place, and nothing starts."""
    project("cases/replayed/test.yaml", HEAD.format("replayed") + f"runner: {{type: replay{settings}}}\ninput: {{}}\n")
    done = program("eval", "--suite", "again")

    assert done.returncode == 2
    assert f"configs/cases/replayed/test.yaml:4:9: `runner` {sentence}" in done.stderr

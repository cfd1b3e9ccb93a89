"""`clawtrace eval --store`: what a span store holds is judged like anything else (spec: cli.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RECORDINGS = Path(__file__).parents[2] / "recordings/pydantic-ai"


@pytest.fixture
def store(tmp_path):
    """A store with two runs."""
    from clawtrace.receiver.recordings.recording import Grouping
    from clawtrace.session.session import Session

    path = tmp_path / "spans.duckdb"
    with Session.open(path) as session:
        for name in ("one_tool", "delegation"):
            session.load_recordings([RECORDINGS / name], Grouping("one", name))
    (tmp_path / "checks.yaml").write_text("assert:\n- no_span_errors\n")
    return path


def judged(ended):
    return [case["case_id"] for case in json.loads(ended.stdout)["cases"]]


def test_all_some_or_those_that_meet_a_condition(store, invoke):
    """Every run of the store, those that --run-id names, those of which --where holds."""
    args = ("eval", "--store", store, "--assertions", "checks.yaml", "--report", "json=-")

    assert judged(invoke(*args)) == ["one_tool", "delegation"]
    assert judged(invoke(*args, "--run-id", "delegation")) == ["delegation"]
    assert judged(invoke(*args, "--where", "run_id LIKE 'one%'")) == ["one_tool"]


def test_a_stored_run_whose_agent_broke_is_red(store, invoke):
    """As it was in its suite; the others are asked nothing more."""
    from clawtrace.model.run import ClosedBy, RunRecord
    from clawtrace.session.session import Session

    with Session.open(store) as session:
        session.put_record(
            RunRecord("one_tool", "one_tool", closed_by=ClosedBy.EXIT, run_status="failed", agent_exit_code=1)
        )
    ended = invoke("eval", "--store", store, "--assertions", "checks.yaml", "--report", "json=-")
    runs = [case["runs"][0] for case in json.loads(ended.stdout)["cases"]]

    assert ended.exit_code == 1
    assert [[(one["id"], one["status"]) for one in run["assertions"]] for run in runs] == [
        [("no_span_errors", "pass"), ("agent_ended_well", "fail")],
        [("no_span_errors", "pass")],
    ]


def test_mistakes_judge_nothing(store, invoke):
    """Each says what is wrong, with exit code 2, and the store is as it was."""
    mistakes = [
        (("--run-id", "delegatio"), "There is no run 'delegatio'. Did you mean `delegation`?"),
        (("--where", "run_id = 'x'"), "No run matches --where \"run_id = 'x'\"; there are 2 runs."),
        (("--where", "case_idd = 1"), "case_idd"),
        (("--where", "TRUE; DROP TABLE runs"), "error"),
        (("--traces", str(RECORDINGS / "one_tool")), "--traces and --store are two sources; give one of them."),
        (("--suite", "s"), "give one of them"),
    ]
    for more, said in mistakes:
        ended = invoke("eval", "--store", store, "--assertions", "checks.yaml", *more)

        assert ended.exit_code == 2, ended.output
        assert said in ended.output
    assert judged(invoke("eval", "--store", store, "--assertions", "checks.yaml", "--report", "json=-"))


def test_the_project_names_the_store(store, invoke, tmp_path):
    """`store.url` stands for --store, once something is asked of runs; a recording that is named goes before it."""
    (tmp_path / "clawtrace.yaml").write_text("store: {url: spans.duckdb}\n")
    args = ("eval", "--assertions", "checks.yaml", "--report", "json=-")

    assert judged(invoke(*args)) == ["one_tool", "delegation"]
    assert judged(invoke(*args, "--run-id", "delegation")) == ["delegation"]
    assert len(judged(invoke(*args, "--traces", RECORDINGS / "one_tool"))) == 1
    assert "Give --suite to run agents (here is none; `clawtrace init` writes one), or" in invoke("eval").stderr
    store.unlink()
    assert "of clawtrace.yaml does not exist yet" in invoke(*args).stderr

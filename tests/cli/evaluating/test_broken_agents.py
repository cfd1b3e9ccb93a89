"""One rule for agents that break: one that did not start is exit 4, one that ended badly is red (spec: assertions.md §2)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

AGENT = Path(__file__).parents[1] / "agent.py"
WITH_SPANS = [sys.executable, str(AGENT), "search"]
ASSERTED = [{"type": "tool_was_called", "tool": "search"}]


@pytest.fixture
def evaluated(invoke, tmp_path):
    """Run one suite of cases, each written as its command and what more its file says; return (exit code, results)."""

    def run(*flags, **cases):
        for case_id, (command, more) in cases.items():
            runner = {"type": "command", "command": command} | more.pop("runner", {})
            case = {"schema_version": 1, "case_id": case_id, "title": case_id, "runner": runner, "assertions": ASSERTED}
            case |= {"input": {"messages": [{"role": "user", "content": "go"}]}} | more
            folder = tmp_path / "configs/cases" / case_id
            folder.mkdir(parents=True)
            (folder / "test.yaml").write_text(yaml.safe_dump(case))
        (tmp_path / "configs/suites").mkdir(exist_ok=True)
        (tmp_path / "configs/suites/s.yaml").write_text("schema_version: 1\nsuite_id: s\ntitle: S\n")
        profile = "schema_version: 1\nrun_profile_id: p\ntitle: P\nexecution_policy: {stop_on_runner_error: false}\n"
        (tmp_path / "configs/run_profiles").mkdir(exist_ok=True)
        (tmp_path / "configs/run_profiles/p.yaml").write_text(profile)
        ended = invoke(
            "eval",
            "--suite",
            "s",
            "--run-profile",
            "p",
            "--report",
            "json=report.json",
            *flags,
            env={"CI": None},
        )
        report = tmp_path / "report.json"
        found = json.loads(report.read_text())["cases"] if report.exists() else []
        return ended, {case["case_id"]: case["runs"][0] for case in found}

    return run


def test_an_agent_that_removes_the_results(evaluated, tmp_path):
    """Its run is an error that says so, no other is started, and verdicts from before are kept."""
    cleans = f"{sys.executable} {AGENT} search; rm -r '{tmp_path}/outputs'"
    ended, runs = evaluated(a=(WITH_SPANS, {}), b=(cleans, {}), c=(WITH_SPANS, {}))

    assert ended.exit_code == 4, ended.output
    assert [run["status"] for run in runs.values()] == ["pass", "error"], ended.output
    assert "spans.duckdb' was deleted, moved or replaced while it was open" in ended.output
    assert "NOT RUN  c · repetition 1: the store or the receiver failed" in ended.output


def test_an_agent_that_ends_badly_is_red(evaluated):
    """By its exit code, a signal, or its time limit; with spans or without, also where its assertions pass."""
    ended, runs = evaluated(
        fails=("exit 3", {}),
        dies=("kill -9 $$", {}),
        hangs=("sleep 60", {"runner": {"timeout_seconds": 0.5, "grace_seconds": 0.1}}),
        asks_nothing=("exit 3", {"assertions": []}),
        with_spans=([*WITH_SPANS, "exit=3"], {}),
    )

    assert ended.exit_code == 1, ended.output
    assert {name: run["status"] for name, run in runs.items()} == dict.fromkeys(runs, "fail")
    asked = {name: [(one["type"], one["status"]) for one in run["assertions"]] for name, run in runs.items()}
    assert asked["with_spans"] == [("tool_was_called", "pass"), ("status_is", "fail")]
    assert asked["hangs"] == [("tool_was_called", "skip"), ("status_is", "fail")]
    assert "The run ended as `timed_out`, expected `success`. The agent was stopped at its time limit" in ended.output
    assert "The run ended as `failed`, expected `success`. The agent exited with code 3." in ended.output


@pytest.mark.full
def test_an_end_that_is_meant_is_not_red(evaluated):
    """Where the case asks how its agent ended, that decides; an agent that ends well is asked nothing more."""
    ended, runs = evaluated(
        refuses=([*WITH_SPANS, "exit=3"], {"assertions": [*ASSERTED, {"type": "agent_exit_code", "value": 3}]}),
        limit=(
            "sleep 60",
            {
                "runner": {"timeout_seconds": 0.5, "grace_seconds": 0.1},
                "assertions": [{"type": "status_is", "status": "timed_out"}],
            },
        ),
        well=(WITH_SPANS, {}),
    )

    assert ended.exit_code == 0, ended.output
    assert {name: len(run["assertions"]) for name, run in runs.items()} == {"refuses": 2, "limit": 1, "well": 1}


def test_an_agent_that_did_not_start_is_broken(evaluated):
    """As text, as a list, through `sh -c` or `env`, behind other commands, or where it may not be executed."""
    ended, runs = evaluated(
        text=("no-such-agent --go", {}),
        behind=("cd / && no-such-agent", {}),
        shell=(["sh", "-c", "no-such-agent"], {}),
        env=(["env", "no-such-agent"], {}),
        not_executable=(str(AGENT), {}),
    )

    assert ended.exit_code == 4
    assert {name: run["status"] for name, run in runs.items()} == dict.fromkeys(runs, "error")
    assert "the agent did not start: a program of its command was not found (exit code 127)" in " ".join(
        ended.output.split()
    )
    assert "no-such-agent" in ended.output


def test_hard_expectations_that_were_not_judged_are_never_green(evaluated):
    """The case is inconclusive and the evaluation exits with 3, until `--allow-unjudged` lets it pass."""
    expectations = {"hard_expectations": [{"text": "It is polite"}], "soft_expectations": []}
    soft = {"hard_expectations": [], "soft_expectations": [{"text": "It is short"}]}
    ended, runs = evaluated(
        hard=(WITH_SPANS, {"expectations": expectations}), soft=(WITH_SPANS, {"expectations": soft})
    )
    assert ended.exit_code == 3, ended.output
    assert {name: run["status"] for name, run in runs.items()} == {"hard": "inconclusive", "soft": "pass"}
    assert "The case has 1 hard expectation, such as 'It is polite', and no judge." in " ".join(ended.output.split())

    ended, runs = evaluated("--allow-unjudged")
    assert ended.exit_code == 0, ended.output
    assert {run["status"] for run in runs.values()} == {"pass"}


@pytest.mark.full
def test_a_variable_that_pass_env_names_and_that_is_not_set_is_reported(evaluated):
    """An agent without its key fails in ways that look like its own mistakes; a glob may match nothing."""
    ended, _ = evaluated(a=(WITH_SPANS, {"runner": {"pass_env": ["NO_SUCH_KEY", "NONE_*"]}}))

    assert ended.exit_code == 0
    assert "warning: `NO_SUCH_KEY` of `pass_env` is not set: the agent of `a` runs without it" in ended.output
    assert "NONE_" not in ended.output


def test_more_runs_than_a_plan_can_hold_are_refused(evaluated):
    """At once, before any memory is taken for them."""
    ended, _ = evaluated("--repeat", "100000000", a=(WITH_SPANS, {}))

    assert ended.exit_code == 2
    assert (
        "1 case × 1 model × 100,000,000 repetitions are 100,000,000 runs, and a campaign has at most 200,000"
        in ended.output
    )


def test_how_a_recording_ended_is_unknown(invoke, tmp_path):
    """`status_is` on a replay of OTLP files is inconclusive; the replay is reused all the same."""
    folder = tmp_path / "configs/cases/r"
    folder.mkdir(parents=True)
    span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "chat", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    spans = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    (folder / "spans.json").write_text(json.dumps(spans))
    (folder / "test.yaml").write_text(
        "schema_version: 1\ncase_id: r\ntitle: R\nrunner: {type: replay, traces: [spans.json]}\n"
        "input: {messages: []}\nassertions: [{type: status_is, status: success}]\n"
    )
    (tmp_path / "configs/suites").mkdir()
    (tmp_path / "configs/suites/s.yaml").write_text("schema_version: 1\nsuite_id: s\ntitle: S\n")
    first = invoke("eval", "--suite", "s", env={"CI": None})
    again = invoke("eval", "--suite", "s", env={"CI": None})

    assert (first.exit_code, again.exit_code) == (3, 3), first.output
    assert "How the run ended is unknown, expected `success`" in " ".join(first.output.split())
    assert "1 reused" in again.output

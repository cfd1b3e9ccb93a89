"""The fields that every assertion accepts, from the file to the exit code: scopes, scores, known failures, rates."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

AGENT = Path(__file__).parents[1] / "agent.py"

SCOPED = """
assertions:
  - {type: llm_call_count, min: 2, max: 2, agent: researcher, dimensions: [efficiency]}
  - {type: tool_not_invoked, tool: get_weather, agent: researcher, id: no-weather, dimensions: [process]}
  - {type: tool_was_called, tool: get_weather, turn: last, dimensions: [task, process]}
  - type: tool_not_invoked
    id: known
    tool: get_weather
    expect: fail
    reason: the forecast is still asked for twice
    until: 2999-12-31
"""


@pytest.fixture
def judged(invoke, recordings, tmp_path):
    """Judge a recording with two agents by the assertions in a text; return the result and its JSON and JUnit reports."""

    def call(text: str, *flags: str):
        (tmp_path / "checks.yaml").write_text(text, encoding="utf-8")
        traces = recordings / "pydantic-ai" / "delegation" / "traces.otlp.jsonl"
        result = invoke(
            "eval", "--traces", traces, "--assertions", "checks.yaml", "--report", "json=r.json", "--report", "junit=r.xml", *flags
        )  # fmt: skip
        if not (tmp_path / "r.json").exists():
            return result, None, None
        return result, json.loads((tmp_path / "r.json").read_text()), ET.parse(tmp_path / "r.xml")

    return call


def test_scopes_scores_and_known_failures_reach_every_report(judged) -> None:
    """Terminal, JSON and JUnit say the scope, the scores and what is known to fail."""
    result, data, junit = judged(SCOPED)
    (run,) = data["cases"][0]["runs"]
    count, weather, called, known = run["assertions"]

    assert result.exit_code == 1
    assert [one["status"] for one in run["assertions"]] == ["pass", "fail", "pass", "warn"]
    assert (count["scope"], called["scope"]) == ({"agent": "researcher", "turn": None}, {"agent": None, "turn": "last"})
    assert (known["scope"], known["known_failure"], weather["known_failure"]) == (None, True, False)
    assert run["scores"] == {"efficiency": 10.0, "process": 5.0, "task": 10.0}
    assert "Within agent `researcher`: `get_weather` was attempted 1 time" in " ".join(result.stdout.split())
    assert "KNOWN FAILURE" in result.stdout
    assert "efficiency 10.0, process 5.0, task 10.0" in result.stdout
    cases = {case.get("name"): case for case in junit.iter("testcase")}
    assert cases["known"].find("skipped").get("type") == "known failure"
    assert cases["no-weather"].find("failure") is not None
    assert "dimensions: process" in cases["no-weather"].find("system-out").text


def test_a_known_failure_alone_exits_0(judged) -> None:
    only = "assertions:\n" + SCOPED[SCOPED.index("  - type: tool_not_invoked\n") :]
    result, *_ = judged(only)
    strict, *_ = judged(only, "--strict")

    assert (result.exit_code, strict.exit_code) == (0, 1)


def test_a_mistake_in_a_common_field_is_reported_with_its_place(judged) -> None:
    """All of them at once, before anything is judged."""
    wrong = """
assertions:
  - {type: agent_exit_code, agent: boss}
  - {type: no_span_errors, turn: first}
  - {type: no_span_errors, dimensions: [taks]}
  - {type: no_span_errors, expect: fail, reason: known}
  - {type: no_span_errors, min_pass_rate: 80}
"""
    result, data, _ = judged(wrong)

    assert (result.exit_code, data) == (2, None)
    errors = " ".join(result.stderr.split())
    assert "checks.yaml:3:" in errors
    assert "`agent` cannot be used here" in errors
    assert "must be the number of a turn, counted from 1, or `last`, found 'first'" in errors
    assert "Did you mean `task`?" in errors
    assert "`expect: fail` needs `until`" in errors
    assert "must be at most 1" in errors


@pytest.mark.parametrize(("rate", "code"), [("0.6", 0), ("0.7", 1)])
@pytest.mark.full
def test_repetitions_are_judged_by_their_rate(program, tmp_path, rate: str, code: int) -> None:
    """The agent leaves its search out every third time; two of three are enough where 0.6 is asked for."""
    count = tmp_path / "count"
    script = f'echo >> {count}; test $(( $(wc -l < {count}) % 3 )) = 0 && exec "$@" || exec "$@" search'
    command = ["sh", "-c", script, "sh", sys.executable, str(AGENT)]
    files = {
        "clawtrace.yaml": "schema_version: 1\n",
        "configs/cases/c/test.yaml": f"schema_version: 1\ncase_id: c\ntitle: c\nrunner: {{type: command, command: {json.dumps(command)}}}\n"
        "input: {messages: [{role: user, content: go}]}\n"
        f"assertions: [{{type: tool_was_called, tool: search, agent: tester, min_pass_rate: {rate}}}, {{type: no_span_errors}}]\n",
        "configs/suites/s.yaml": "schema_version: 1\nsuite_id: s\ntitle: s\n",
        "configs/run_profiles/p.yaml": "schema_version: 1\nrun_profile_id: p\ntitle: p\nexecution_policy: {run_repetitions: 3}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = program("eval", "--suite", "s", "--run-profile", "p")
    (path,) = (tmp_path / "outputs").rglob("report.json")
    (case,) = json.loads(path.read_text())["cases"]

    assert done.returncode == code, done.stdout + done.stderr
    assert [run["status"] for run in case["runs"]] == ["pass", "pass", "fail"]
    assert case["assertions"][0]["reached"] is (code == 0)
    assert case["assertions"][0]["pass_rate"] == pytest.approx(2 / 3)

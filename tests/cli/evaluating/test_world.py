"""Probes, preconditions and hooks from the command line: a real agent, a real workspace (spec: assertions.md §1, §7)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

CASE = """\
schema_version: 1
case_id: c
title: Writes a report
runner:
  type: command
  command: |
    {command}
  setup: ["echo seed > template.txt"]
input: {{messages: [{{role: user, content: hello}}]}}
{checks}
"""


@pytest.fixture
def suite(tmp_path: Path, program):
    """Write one case, run it, and return the program's end with the verdicts by id."""

    def run(command: str, checks: str, *, policy: str = "", env=None):
        files = {
            "configs/cases/c/test.yaml": CASE.format(command=command, checks=checks),
            "configs/suites/s.yaml": "schema_version: 1\nsuite_id: s\ntitle: S\n",
            "configs/evaluation_profiles/e.yaml": "schema_version: 1\nevaluation_profile_id: e\ntitle: E\n" + policy,
        }
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        report = tmp_path / "results.json"
        report.unlink(missing_ok=True)
        args = ("eval", "--suite", "s", "--evaluation-profile", "e", "--report", f"json={report}")
        ended = program(*args, env=env)
        if not report.exists():
            return ended, {}, None
        (run,) = json.loads(report.read_text())["cases"][0]["runs"]
        return ended, {one["id"]: (one["status"], one["message"]) for one in run["assertions"]}, run

    return run


@pytest.mark.smoke
def test_files_are_judged_in_the_runs_own_workspace(suite) -> None:
    """All three notations reach the same probes; what setup made is stale; no trace is needed."""
    ended, verdicts, _ = suite(
        "mkdir out; printf '# Hook\\n' > out/report.md; echo done",
        """\
assert:
  - artifact_exists: out/report.md
  - artifact_exists: {path: template.txt, id: stale, severity: warn}
  - file_contains: {path: out/report.md, text: Hook}
  - verify: {run: "ls out", output_equals: report.md}
  - status_is: success
assertions:
  - type: artifact_contains
    path: out/report.md
    sections: [hook]
deterministic_checks:
  - check_id: in-the-difference
    declarative: {kind: openclaw_workspace_file_present, relative_path: out/report.md}
""",
    )

    assert {name: status for name, (status, _) in verdicts.items()} == {
        "artifact_exists": "pass",
        "stale": "fail",
        "file_contains": "pass",
        "verify": "pass",
        "status_is": "pass",
        "artifact_contains": "pass",
        "in-the-difference": "pass",
    }
    assert "was not touched" in verdicts["stale"][1]
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("key", ["preconditions", "given"])
def test_a_precondition_that_does_not_hold_starts_no_agent(key, suite, tmp_path) -> None:
    """The run is an error, the agent's command never ran, and the exit code is 4."""
    ended, _, run = suite(
        f"touch {tmp_path}/started",
        f"{key}:\n  - file_present: SKILL.md\n  - type: env_present\n    vars: [NO_SUCH_KEY]\nassertions: []",
    )

    assert ended.returncode == 4
    assert not (tmp_path / "started").exists()
    assert run["status"] == "error"
    assert "precondition: `file_present` does not hold: `SKILL.md` does not exist." in ended.stdout
    assert "`env_present` does not hold: `NO_SUCH_KEY` is not set." in ended.stdout


def test_preconditions_that_hold_let_the_agent_start(suite, tmp_path) -> None:
    """They see the workspace as `setup` left it."""
    ended, verdicts, _ = suite(
        f"touch {tmp_path}/started",
        "given:\n  - file_present: template.txt\n  - file_absent: out\nassert:\n  - status_is: success\n",
    )

    assert ended.returncode == 0, ended.stdout
    assert (tmp_path / "started").exists()
    assert verdicts["status_is"][0] == "pass"


def test_only_a_probe_of_the_world_can_be_a_precondition(suite) -> None:
    """What looks at the agent's work is refused when the case is loaded."""
    ended, _, _ = suite("true", "preconditions:\n  - no_span_errors\nassertions: []")

    assert ended.returncode == 2
    assert "configs/cases/c/test.yaml:11:5:" in ended.stderr
    assert "a precondition is one of `env_present`, `file_absent`, `file_present`, `gateway_healthy`" in ended.stderr


HOOK = """\
deterministic_checks:
  - check_id: counted
    python_hook: {path: hooks/count.py, callable_name: count}
"""


def test_hooks_run_only_with_leave(suite, tmp_path) -> None:
    """Off by default, which costs no run; allowed, the hook sees the run's facts and its workspace."""
    hooks = tmp_path / "configs/cases/c/hooks"
    hooks.mkdir(parents=True)
    (hooks / "count.py").write_text(
        "import pathlib\ndef count(run, context):\n"
        "    text = (pathlib.Path(run.workspace) / 'n').read_text()\n"
        "    return {'passed': text == '3\\n' and run.run_status == 'success', 'message': context.check_id}\n"
    )
    refused, _, _ = suite("echo 3 > n", HOOK)
    allowed, verdicts, _ = suite("echo 3 > n", HOOK, policy="security_policy: {allow_local_python_hooks: true}\n")

    assert refused.returncode == 2
    assert "configs/cases/c/test.yaml:12:18:" in refused.stderr
    assert "`security_policy: {allow_local_python_hooks: true}`" in refused.stderr
    assert allowed.returncode == 0, allowed.stdout
    assert verdicts == {"counted": ("pass", "counted")}


def test_a_hook_that_is_not_there_is_found_before_the_run(suite, tmp_path) -> None:
    """As any file next to the case."""
    ended, _, _ = suite(f"touch {tmp_path}/started", HOOK, policy="security_policy: {allow_local_python_hooks: true}\n")

    assert ended.returncode == 2
    assert "the file 'hooks/count.py' does not exist next to test.yaml" in ended.stderr
    assert not (tmp_path / "started").exists()


def test_secrets_do_not_reach_the_report_through_a_probe(suite) -> None:
    """What a check read from a file is redacted like everything else, unless the profile says otherwise."""
    secret = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8I9j0" * 4 + "AA"
    checks = 'assert:\n  - verify: {run: "cat key", output_contains: nothing}\n'
    _, _, hidden = suite(f"echo {secret} > key", checks)
    _, _, shown = suite(f"echo {secret} > key", checks, policy="security_policy: {redact_secrets: false}\n")

    assert secret not in json.dumps(hidden)
    assert "[REDACTED:" in json.dumps(hidden)
    assert secret in json.dumps(shown)


def test_a_secret_in_a_file_that_the_run_wrote_is_a_leak(suite) -> None:
    """`no_secret_leak` reads what the run created and changed, not what was there before."""
    secret = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8I9j0" * 4 + "AA"
    agent = f"{sys.executable} {Path(__file__).parents[1] / 'agent.py'} search"
    checks = "assertions:\n  - {type: no_secret_leak, on_missing: pass}\n  - {type: no_secret_leak, id: spans, files: false, on_missing: pass}\n"
    ended, leaked, _ = suite(f"{agent}; mkdir out; echo key={secret} > out/.env", checks)
    _, clean, _ = suite(f"{agent}; mkdir out; echo key=none > out/.env", checks)

    assert leaked["no_secret_leak"][0] == "fail"
    assert "in the file `out/.env`" in leaked["no_secret_leak"][1]
    assert leaked["spans"][0] == clean["no_secret_leak"][0] == "pass"
    assert secret not in ended.stdout


def test_t31_a_file_whose_name_is_no_text_loses_no_verdict(suite, tmp_path) -> None:
    """Names of files are bytes; results are text."""
    ended, verdicts, _ = suite("printf x > \"$(printf 'a\\377.md')\"", "assert: [{output_artifact_present: md}]\n")
    (kept,) = tmp_path.glob("outputs/campaigns/s/*/runs/-/c/1/workspace.diff")

    assert verdicts["output_artifact_present"] == ("pass", "The run wrote 1 of its 1 files of type 'md': a?.md.")
    assert json.loads(kept.read_text(encoding="utf-8"))["created"] == ["a\udcff.md"]
    assert ended.returncode == 0, ended.stdout


def test_t20_a_transcript_of_an_earlier_run_is_no_evidence_of_this_one(suite, tmp_path) -> None:
    """Its lines name no run: only that this run wrote it makes them this run's."""
    transcripts = Path(__file__).parents[2] / "logs" / "transcripts" / "claude-code" / "one_tool"
    (source,) = transcripts.glob("*.jsonl")
    (tmp_path / "earlier.jsonl").write_bytes(source.read_bytes())
    asked = "assert: [{{tool_was_called: {{tool: Bash, log_path: {log}}}}}]\n"
    ended, old, _ = suite("echo done", asked.format(log=tmp_path / "earlier.jsonl"))
    _, new, _ = suite(f"cp {tmp_path}/earlier.jsonl now.jsonl", asked.format(log="now.jsonl"))

    assert old["tool_was_called"][0] == "skip"
    assert ended.returncode == 3
    assert new["tool_was_called"][0] == "pass"


def test_what_the_runner_read_is_the_answer_of_a_run_without_spans(suite) -> None:
    """The final answer is the runner's word where no span records it; of an agent in the run nothing is known then."""
    checks = (
        "assertions:\n"
        "  - {type: final_response, contains: '42', id: right}\n"
        "  - {type: final_response, contains: '43', id: wrong}\n"
        "  - {type: final_response, contains: '42', agent: triage, id: scoped}\n"
        "  - {type: final_response_present}\n"
        "  - {type: tool_not_invoked, tool: rm, id: traced}\n"
    )
    _, verdicts, _ = suite("echo 'it is 42'", checks)
    _, nothing, _ = suite("true", checks)
    _, failed, _ = suite("echo 'it is 42'; exit 3", checks)

    assert {name: status for name, (status, _) in verdicts.items()} == {
        "right": "pass", "wrong": "fail", "scoped": "skip", "final_response_present": "pass", "traced": "skip",
    }  # fmt: skip
    assert {status for status, _ in nothing.values()} <= {"skip", "fail"}
    assert failed["final_response_present"] == ("fail", "The run ended as `failed`, so what it answered is not final.")

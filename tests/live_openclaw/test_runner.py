"""The runner `openclaw` for real: a suite of its cases against a scripted model, side by side in separate gateways."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from openclaw_install import NEWEST, VERSION, CannotInstallError, OpenClaw, install
from plugin_registry import plugin_registry
from tests.judge.conftest import answer, says

from clawtrace.campaign.planning.expand import expand
from clawtrace.campaign.running.execute import execute
from clawtrace.cli.main import cli
from clawtrace.config.loading.suite_file import load_suite
from clawtrace.config.projects.project_file import load_project
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.model.verdict import RunResult
from clawtrace.session.session import Session
from clawtrace.testing import Exchange, scripted_model
from not_run import not_run
from page_blocks import FRAMEWORKS, installed, run_the_blocks

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

KEY = "sk-or-v1-0123456789abcdef0123456789abcdef"
HEAD = {"schema_version": 1, "title": "T"}


@dataclass(frozen=True)
class RunOfOpenClaw:
    """One run: its verdicts, its facts, and its folder."""

    result: RunResult
    facts: dict[str, Any]
    folder: Path

    @property
    def verdicts(self) -> dict[str, str]:
        """Status of each assertion."""
        return {one.id: one.status.value for one in self.result.verdicts}


class OpenClawSuite:
    """Writes cases of one suite, all run at the same time by one model."""

    def __init__(self, openclaw: OpenClaw, root: Path) -> None:
        self.openclaw = openclaw
        self.root = root
        self.env: dict[str, str] = {}

    def write(self, name: str, data: Any) -> None:
        """Write one file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False), encoding="utf-8")

    def write_all(self, cases: dict[str, dict[str, Any]], model_url: str) -> dict[str, str]:
        """Write all files; return the environment that leads to the model."""
        openclaw = self.openclaw
        for case_id, case in cases.items():
            runner = {"type": "openclaw", **case.get("runner", {})}
            self.write(f"configs/cases/{case_id}/test.yaml", {**HEAD, "case_id": case_id, **case, "runner": runner})
        agent = {"agent": {"id": "support-agent"}, "agents_defaults": {"timeoutSeconds": 500}}
        self.write("configs/agents/support_agent/agent.yaml", {**HEAD, "agent_id": "support_agent", "openclaw": agent})
        self.write("configs/agents/support_agent/workspace/SOUL.md", "You are Nell, who signs with N.\n")
        models = [{"model_id": "mini", "requested_model": "openai/gpt-4o-mini"}]
        self.write("configs/suites/s.yaml", {**HEAD, "suite_id": "s", "models": models})
        # PYTHONPATH: the clawtrace under test may be another one than is installed.
        defaults = {"cli": [str(openclaw.node), str(openclaw.program)], "pass_env": ["PYTHONPATH"]}
        profile = {
            "run_profile_id": "p",
            "runner_defaults": defaults,
            "execution_policy": {"max_concurrency": len(cases)},
            "openclaw": {"agent_id": "support_agent", "image": None, "timeout_seconds": 600},
        }
        self.write("configs/run_profiles/p.yaml", {**HEAD, **profile})
        return {
            **os.environ, "PATH": f"{openclaw.bin}{os.pathsep}{os.environ['PATH']}", "OPENROUTER_API_KEY": KEY,
            "OPENROUTER_BASE_URL": f"{model_url}/v1", "OPENCLAW_PLUGIN_STAGE_DIR": str(openclaw.stage),
            "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model_url, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{model_url}/v1",
            "GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": model_url, **self.env,
        }  # fmt: skip

    def run(
        self, steps: list[dict[str, Any]], cases: dict[str, dict[str, Any]]
    ) -> tuple[dict[str, RunOfOpenClaw], list[Exchange]]:
        """Run the cases; return each run by its case, and what the model was asked."""
        with scripted_model(steps) as model:
            env = self.write_all(cases, model.url)
            project = load_project(self.root, {})
            plan = expand(load_suite("s", project, env, run_profile="p"))
            plan.folder.mkdir(parents=True)
            with Session.open(plan.store, receive=True, settings=session_settings(project)) as session:
                done = execute(plan, session, env)
                facts = {one["run_id"]: one for one in session.inspect()["runs"]}
            asked = list(model.log)
        runs = {
            str(result.case_id): RunOfOpenClaw(
                result, facts[result.run_id], plan.folder / "runs/mini" / str(result.case_id) / "1"
            )
            for result in done.results
        }
        return runs, asked

    def report(self, steps: list[dict[str, Any]], cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Evaluate the suite by its profile `e`; return the JSON report."""
        with scripted_model(steps) as model, pytest.MonkeyPatch.context() as patch:
            for name, value in self.write_all(cases, model.url).items():
                patch.setenv(name, value)
            patch.chdir(self.root)
            words = [
                "eval",
                "--suite",
                "s",
                "--run-profile",
                "p",
                "--evaluation-profile",
                "e",
                "--report",
                "json=r.json",
            ]
            ended = CliRunner().invoke(cli, words, prog_name="clawtrace")
        assert ended.exit_code == 0, ended.output
        return json.loads((self.root / "r.json").read_text())


@pytest.fixture
def suite(openclaw: OpenClaw, tmp_path: Path) -> OpenClawSuite:
    return OpenClawSuite(openclaw, tmp_path)


def user(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


def exec_(command: str) -> list[dict[str, Any]]:
    return [{"name": "exec", "arguments": {"command": command}}]


STEPS: list[dict[str, Any]] = [
    {"when": {"user": "Create draft"}, "tool_calls": exec_("printf one > draft.md")},
    {"when": {"user": "Create draft", "last": "tool"}, "text": "The draft is there."},
    {
        "when": {"user": "Revise"},
        "tool_calls": exec_(
            "printf two >> draft.md; printf report > report.md; grep -rl 'sk-or-v[1]-0' .. > leaked.txt || true"
        ),
    },
    {"when": {"user": "Revise", "last": "tool"}, "text": "Revised. N."},
    {"when": {"user": "delegate"}, "tool_calls": [{"name": "sessions_spawn", "arguments": {"task": "Look it up."}}]},
    {"when": {"user": "delegate", "last": "tool"}, "text": "I asked a helper."},
    {"when": {"user": "Look it up"}, "tool_calls": exec_("printf found > found.txt")},
    {"when": {"user": "Look it up", "last": "tool"}, "text": "It is found."},
    {"when": {"user": "Say hi"}, "text": "Hi."},
    {"text": "The helper found it.", "repeat": True},  # however OpenClaw announces it
]
CASES: dict[str, dict[str, Any]] = {
    "talk": {
        "input": {
            "messages": [{"role": "system", "content": "Keep context across user turns."}],
            "turns": user("Create draft.md.", "Revise draft.md and create report.md."),
            "context": {"openclaw": {"expected_artifact": "report.md"}},
        },
        "deterministic_checks": [
            {"check_id": "report", "declarative": {"kind": "openclaw_workspace_file_present", "relative_path": "report.md", "contains_all": ["REPORT"]}},
            {"check_id": "answered", "declarative": {"kind": "final_response_present"}},
        ],
        "assertions": [
            {"type": "tool_call_count", "tool": "exec", "min": 2, "max": 2},
            {"type": "tool_call_count", "id": "later", "tool": "exec", "min": 1, "max": 1, "turn": 2},
            {"type": "llm_call_count", "min": 4, "max": 4},
            {"type": "no_span_errors"},
        ],
    },
    "helper": {
        "runner": {"provider": "anthropic"},
        "input": {"messages": user("Please delegate it.")},
        "assertions": [
            {"type": "tool_was_called", "tool": "sessions_spawn"},
            {"type": "artifact_exists", "path": "found.txt"},
        ],
    },
    "denied": {
        "runner": {"provider": "google", "deny_tools": ["exec"]},
        "input": {"messages": user("Say hi.")},
        "assertions": [{"type": "llm_call_count", "min": 1, "max": 1}, {"type": "tool_not_invoked", "tool": "exec"}],
    },
}  # fmt: skip


def test_turns_sub_agents_and_denied_tools_side_by_side(suite) -> None:
    """Three gateways on one receiver, each with another protocol; what was asked, called, said and written is what the model server saw."""
    runs, asked = suite.run(STEPS, CASES)

    assert {name: run.verdicts for name, run in runs.items()} == {
        "talk": {
            "report": "pass", "answered": "pass", "tool_call_count": "pass", "later": "pass", "llm_call_count": "pass",
            "no_span_errors": "pass",
        },
        "helper": {"tool_was_called": "pass", "artifact_exists": "pass"},
        "denied": {"llm_call_count": "pass", "tool_not_invoked": "pass"},
    }  # fmt: skip
    assert all((run.result.run_status, run.result.complete) == ("success", True) for run in runs.values())
    assert sum(run.facts["totals"]["llm_calls"] for run in runs.values()) == len(asked)
    assert {one.status for one in asked} == {200}
    assert {one.model.rpartition("/")[2] for one in asked} == {"gpt-4o-mini"}  # in Google's address it is the last part
    talk = runs["talk"]
    assert (talk.folder / "workspace/draft.md").read_text() == "onetwo"
    assert talk.facts["final_output"] == "Revised. N."
    prompts = [json.dumps(one.request) for one in asked]
    assert any("You are Nell, who signs with N." in text for text in prompts)
    assert any("Keep context across user turns." in text and "Create draft.md." in text for text in prompts)
    assert {one.api for one in asked} == {"chat", "anthropic", "gemini"}
    (hi,) = (one for one in asked if one.api == "gemini")
    assert "exec" not in hi.tools_offered
    assert Counter(call["name"] for call in runs["helper"].facts["tool_calls"]) == {"sessions_spawn": 1, "exec": 1}
    assert (talk.folder / "workspace/leaked.txt").read_text() == ""
    for run in runs.values():
        assert not (run.folder / "gateway").exists()
        for file in run.folder.rglob("*"):
            assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_the_newest(openclaw: OpenClaw, tmp_path: Path) -> None:
    """It does not carry its plugin: its own command line installs it for the run, and spans and transcript tell all that happened.

    Two turns in one session, over OpenAI's Responses. Most tools are called through `tool_call`: each is one call, of the tool
    that it names, also at the same time as another tool, and where there is no such tool.
    """
    try:
        newest = install(NEWEST)
    except CannotInstallError as error:
        not_run("openclaw", f"this machine lacks the newest OpenClaw: {error}")
    suite = OpenClawSuite(newest, tmp_path)
    own = Path(os.environ.get("NPM_CONFIG_USERCONFIG", Path.home() / ".npmrc"))
    case = {
        "runner": {"provider": "openai", "pass_env": ["PYTHONPATH"]},
        "input": {"turns": user("Write report.md.", "Thank you.")},
        "assertions": [
            {"type": "artifact_exists", "path": "report.md"},
            {"type": "tool_call_count", "min": 3, "max": 3},
            {"type": "tool_call", "tool": "write", "args": {"path": "report.md"}, "turn": 1},
            {"type": "tool_call", "id": "status", "tool": "session_status", "args": {"sessionKey": "current"}},
            {"type": "tool_not_called", "tool": "tool_call"},
            {"type": "llm_call_count", "min": 4, "max": 4},
            {"type": "trace_token_budget", "max_total_tokens": 60},
        ],
    }
    status = {"name": "tool_call", "arguments": {"id": "session_status", "args": {"sessionKey": "current"}}}
    unknown = {"name": "tool_call", "arguments": {"id": "no_such_tool", "args": {"x": 1}}}
    steps = [
        {"tool_calls": [{"name": "write", "arguments": WRITTEN}, status]},
        {"tool_calls": [unknown]},
        {"text": "It is written."},
        {"text": "Bye. N."},
    ]
    with plugin_registry(openclaw.program) as registry:
        suite.write("npmrc", f"{own.read_text() if own.exists() else ''}\n@openclaw:registry={registry}\n")
        suite.env = {"NPM_CONFIG_USERCONFIG": str(tmp_path / "npmrc")}
        runs, asked = suite.run(steps, {"talk": case})
    (run,) = runs.values()

    assert run.verdicts == dict.fromkeys(run.verdicts, "pass"), run.result.verdicts
    assert (run.result.run_status, run.result.complete) == ("success", True)
    assert [(one.api, one.status) for one in asked] == [("responses", 200)] * 4
    assert run.facts["totals"]["input_tokens"] == 40
    calls = [(call["name"], call["arguments"], call["outcome"]) for call in run.facts["tool_calls"]]
    assert sorted(calls, key=str) == [
        ("no_such_tool", {"x": 1}, "error"),
        ("session_status", {"sessionKey": "current"}, "ok"),
        ("write", WRITTEN, "ok"),
    ]
    assert [one["name"] for one in run.facts["errors"]] == ["no_such_tool"]
    assert run.facts["final_output"] == "Bye. N."


AGENT = Path(__file__).parents[1] / "judge" / "judged_agent.py"
THREE: dict[str, dict[str, Any]] = {
    "claw": {
        "input": {"messages": user("Write report.md.")},
        "assertions": [{"type": "tool_call_count", "tool": "write", "min": 1, "max": 1}],
    },
    "probe": {
        "runner": {"type": "llm_probe"},
        "input": {"messages": user("Write report.md."), "context": {"llm_probe": {"tools": ["write_file"]}}},
        "assertions": [{"type": "tool_call_count", "tool": "write_file", "min": 1, "max": 1}],
    },
    "any": {
        "runner": {"type": "command", "command": [sys.executable, str(AGENT)]},
        "input": {"messages": user("Write report.md.")},
        "assertions": [{"type": "tool_call_count", "tool": "write_file", "min": 1, "max": 1}],
    },
}
WRITTEN = {"path": "report.md", "content": "Tides follow the moon."}
PLAY: list[dict[str, Any]] = [
    {**says(answer(8)), "when": {"user": "Judge the agent's work"}, "repeat": True},
    {"when": {"tools": ["write_file"], "last": "user"}, "tool_calls": [{"name": "write_file", "arguments": WRITTEN}]},
    {"when": {"tools": ["write"], "last": "user"}, "tool_calls": [{"name": "write", "arguments": WRITTEN}]},
    {"when": {"last": "tool"}, "text": "The report is in report.md.", "repeat": True},
]


def test_three_runners_in_one_report(suite) -> None:
    """A model with tools, a real OpenClaw and any command do the same task; the same checks and the same judge decide."""
    judge = {"judge_id": "j", "type": "llm_probe", "model": "acme/judge-1"}
    profile = {
        "evaluation_profile_id": "e",
        "judges": [judge],
        "judge_runs": [{"judge_run_id": "once", "judge_id": "j"}],
        "aggregation": {"pass_threshold": 7},
    }
    suite.write("configs/evaluation_profiles/e.yaml", {**HEAD, **profile})
    cases = {
        name: {**case, "assertions": [*case["assertions"], {"type": "artifact_exists", "path": "report.md"}]}
        for name, case in THREE.items()
    }
    found = suite.report(PLAY, cases)
    runs = {case["case_id"]: case["runs"][0] for case in found["cases"]}

    passed = {"tool_call_count": "pass", "artifact_exists": "pass", "judge": "pass"}
    for run in runs.values():
        assert {one["id"]: one["status"] for one in run["assertions"]} == passed
        assert (run["final_score"], run["totals"]["tool_calls"]) == (8, 1)
    assert runs.keys() == {"claw", "probe", "any"}
    assert found["judging"]["answers"] == 3


def test_the_bundled_suite_passes(openclaw: OpenClaw, tmp_path: Path) -> None:
    """`configs/suites/openclaw.yaml` against its script, with OpenClaw found on PATH."""
    path = os.pathsep.join((*map(str, on_path(openclaw, tmp_path)), os.environ["PATH"]))
    root, out = Path(__file__).parents[2], tmp_path / "out"
    evaluate = ["eval", "--suite", "openclaw", "--run-profile", "openclaw", "--out", str(out)]
    clawtrace = [sys.executable, "-m", "clawtrace"]
    script = "configs/cases/openclaw/report/script.yaml"
    done = subprocess.run(
        [*clawtrace, "model-server", script, "--", *clawtrace, *evaluate],
        cwd=root, env={**os.environ, "PATH": path, "OPENCLAW_PLUGIN_STAGE_DIR": str(openclaw.stage)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_recorded_gateway_needs_no_provider(openclaw: OpenClaw, tmp_path: Path) -> None:
    """The bundled suite is recorded once, then replayed without provider and key; its prompts name other folders and times then."""
    path = os.pathsep.join((*map(str, on_path(openclaw, tmp_path)), os.environ["PATH"]))
    root, profile = Path(__file__).parents[2], tmp_path / "recorded.yaml"
    text = (root / "configs/run_profiles/openclaw.yaml").read_text("utf-8")
    profile.write_text(
        text.replace("run_profile_id: openclaw", "run_profile_id: recorded") + "cassette: {path: tape.yaml}\n"
    )
    clawtrace = [sys.executable, "-m", "clawtrace"]
    provider = ["model-server", "configs/cases/openclaw/report/script.yaml", "--", *clawtrace]
    env = {name: text for name, text in os.environ.items() if not name.endswith("_API_KEY")}
    env |= {
        "PATH": path,
        "OPENCLAW_PLUGIN_STAGE_DIR": str(openclaw.stage),
        "OPENROUTER_BASE_URL": "http://127.0.0.1:9/v1",
    }
    for more, mode in ((provider, "record"), ((), "replay")):
        evaluate = [
            "eval",
            "--suite",
            "openclaw",
            "--run-profile",
            str(profile),
            "--cassette-mode",
            mode,
            "--out",
            str(tmp_path / mode),
        ]
        done = subprocess.run(
            [*clawtrace, *more, *evaluate], cwd=root, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, mode + done.stdout + done.stderr


def test_the_commands_of_its_page(openclaw: OpenClaw, tmp_path: Path) -> None:
    """docs/frameworks/openclaw.md as it is written: the case passes, and the planted fault fails as the page shows."""
    text = (FRAMEWORKS / "openclaw.md").read_text("utf-8")
    assert installed(text) == [f"openclaw@{VERSION}"]
    programs = on_path(openclaw, tmp_path)

    printed = run_the_blocks(text, tmp_path, *programs, OPENCLAW_PLUGIN_STAGE_DIR=str(openclaw.stage))

    (red,) = [one for one in printed if "FAIL" in one]
    (shown,) = re.findall(r"```\n(FAIL.*?\n)```", text, re.DOTALL)
    assert shown in red


def on_path(openclaw: OpenClaw, folder: Path) -> tuple[Path, Path]:
    """Return the folders that hold `openclaw` and Node, for PATH."""
    program = folder / "bin" / "openclaw"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{openclaw.node}" "{openclaw.program}" "$@"\n')
    program.chmod(0o755)
    return program.parent, openclaw.bin

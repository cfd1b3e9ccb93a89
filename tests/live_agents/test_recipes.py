"""The recipes of `configs/cases/coding_agents` with the real programs from npm, each against a scripted model.

Where npm cannot install them (`agents_install.py`) the tests are listed as not run; `CLAWTRACE_REQUIRE=agents` makes that a failure.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from agents_install import PACKAGES, CannotInstallError, install
from click.testing import CliRunner

from clawtrace.cli.main import cli
from clawtrace.testing import Exchange, scripted_model
from not_run import not_run

pytestmark = [pytest.mark.full, pytest.mark.needs("node"), pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
KEYS = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "scripted")
COMMAND = "printf hello > hello.txt"
CODEX = """\
model = "gpt-5-codex"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""


def opencode_settings(url: str) -> str:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "scripted"},
        "models": {"gpt-4o": {"tool_call": True}},
    }
    models = {"model": "scripted/gpt-4o", "small_model": "scripted/gpt-4o"}
    return json.dumps({**models, "autoupdate": False, "provider": {"scripted": provider}})


@dataclass(frozen=True)
class CodingAgent:
    """A program: its package, and the tool by which it writes."""

    package: str
    tool: str
    arguments: dict[str, Any]
    env: dict[str, str] = field(default_factory=dict)


AGENTS = {
    "claude_code": CodingAgent(
        PACKAGES["claude_code"], "Write", {"file_path": "hello.txt", "content": "hello"}
    ),
    "codex": CodingAgent(PACKAGES["codex"], "exec_command", {"cmd": COMMAND}),
    "gemini_cli": CodingAgent(
        PACKAGES["gemini_cli"], "run_shell_command", {"command": COMMAND}, env={"GEMINI_MODEL": "gemini-2.5-flash"}
    ),
    "qwen_code": CodingAgent(
        PACKAGES["qwen_code"], "run_shell_command", {"command": COMMAND, "is_background": False},
        env={"OPENAI_MODEL": "gpt-4o"},
    ),
    "opencode": CodingAgent(PACKAGES["opencode"], "write", {"filePath": "hello.txt", "content": "hello"}),
}  # fmt: skip


def installed(package: str) -> Path:
    """Return the folder with the package's program, installed if it is not there yet; else skip, or fail where it is required."""
    try:
        return install(package)
    except CannotInstallError as error:
        not_run("agents", str(error))


def evaluated(name: str, agent: CodingAgent, home: Path, patch: pytest.MonkeyPatch) -> tuple[Any, list[Exchange]]:
    """Run the recipe in a separate home; return the run of the report, and what the model was asked."""
    call = {"name": agent.tool, "arguments": agent.arguments}
    steps = [{"when": {"tools": [agent.tool]}, "tool_calls": [call]}, {"text": "It is written.", "repeat": True}]
    program = installed(agent.package)
    (home / ".codex").mkdir()
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    with scripted_model(steps) as model:
        (home / ".codex/config.toml").write_text(CODEX.format(url=model.url))
        env = {
            **KEYS, **agent.env, "HOME": str(home), "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
            "ANTHROPIC_BASE_URL": model.url, "OPENAI_BASE_URL": f"{model.url}/v1", "GOOGLE_GEMINI_BASE_URL": model.url,
            "OPENCODE_CONFIG_CONTENT": opencode_settings(model.url),
        }  # fmt: skip
        for key, value in env.items():
            patch.setenv(key, value)
        patch.chdir(ROOT)
        report, out = home / "report.json", home / "out"
        words = ["eval", "--suite", "coding_agents", "--case", name, "--no-reuse", "--out", str(out)]
        ended = CliRunner().invoke(cli, [*words, "--report", f"json={report}"], prog_name="clawtrace")
        asked = list(model.log)
    assert ended.exit_code == 0, ended.output
    ((run,),) = [case["runs"] for case in json.loads(report.read_text())["cases"]]
    return run, asked


@pytest.mark.parametrize("name", AGENTS)
def test_a_recipe_runs_as_it_is_written(name, tmp_path, monkeypatch):
    """The agent writes the file, its spans arrive and its calls are those of the model's log."""
    agent = AGENTS[name]
    run, asked = evaluated(name, agent, tmp_path, monkeypatch)

    assert {one["status"] for one in run["assertions"]} == {"pass"}
    assert (run["trace"]["spans"] > 0, run["trace"]["complete"]) == (True, True)
    assert {one.status for one in asked} == {200}
    assert agent.tool in {call["name"] for one in asked for call in one.tool_calls}
    assert run["totals"]["llm_calls"] == len(asked)

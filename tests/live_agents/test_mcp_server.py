"""Claude Code and Codex, each driven by a scripted model, find a failing verdict through `clawtrace mcp` and add an assertion.

They are set up as `docs/coding-agents.md` says.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from agents_install import PACKAGES
from test_recipes import CODEX, KEYS, ROOT, installed

from clawtrace.testing import scripted_model

pytestmark = [pytest.mark.full, pytest.mark.needs("node"), pytest.mark.timeout(900)]

PAGE = (ROOT / "docs/coding-agents.md").read_text()
AGENT = ROOT / "tests/cli/agent.py"
FILE = "configs/cases/greeting/test.yaml"
FILES = {
    "clawtrace.yaml": "outputs: outputs\n",
    "configs/suites/smoke.yaml": "schema_version: 1\nsuite_id: smoke\ntitle: Smoke\ncase_selection: {include_tags: [smoke]}\n",
    FILE: f"""\
schema_version: 1
case_id: greeting
title: It greets
tags: [smoke]
runner: {{type: command, command: ["{sys.executable}", "{AGENT}", greet]}}
input: {{messages: [{{role: user, content: Hello}}]}}
assertions:
  - {{type: tool_was_called, id: asks, tool: ask}}
""",
}
CALLS = [
    ("results", {}),
    ("explain_verdict", {"verdict_id": "asks"}),
    ("add_assertions", {"file": FILE, "assertions": "- {type: tool_was_called, id: greets, tool: greet}\n"}),
    ("run_suite", {"suite": "smoke"}),
    ("results", {"status": "all"}),
]
SETTINGS = next(text for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL) if "mcp_servers" in text)
ADD = next(line for line in PAGE.splitlines() if line.startswith("claude mcp add")).split()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in a home, whose suite has failed."""
    folder = tmp_path / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "clawtrace", "eval", "--suite", "smoke", "--quiet"]
    assert subprocess.run(command, cwd=folder, check=False, timeout=120).returncode == 1
    return folder


@pytest.mark.parametrize("name", ["claude_code", "codex"])
def test_a_coding_agent_finds_what_failed_and_adds_an_assertion(name: str, project: Path) -> None:
    """It gets the verdict with its spans; what it adds is in the file, and has a verdict of a new run."""
    offered = [f"mcp__clawtrace__{tool}" for tool, _ in CALLS]
    asked = [{"name": f"mcp__clawtrace__{tool}", "arguments": arguments} for tool, arguments in CALLS]
    steps = [{"when": {"tools": [tool]}, "tool_calls": [call]} for tool, call in zip(offered, asked, strict=True)]
    # Claude Code begins before its servers have started, and offers to wait for them.
    wait = [{"when": {"tools": ["WaitForMcpServers"]}, "tool_calls": [{"name": "WaitForMcpServers", "arguments": {}}]}]
    with scripted_model([*(wait if name == "claude_code" else []), *steps, {"text": "Done.", "repeat": True}]) as model:
        path = os.pathsep.join([str(installed(PACKAGES[name])), str(Path(sys.executable).parent), os.environ["PATH"]])
        env = {
            **os.environ, **KEYS, "HOME": str(project.parent), "PATH": path, "ANTHROPIC_BASE_URL": model.url,
        }  # fmt: skip
        if name == "claude_code":
            subprocess.run(ADD, cwd=project, env=env, check=True, capture_output=True, timeout=120)
            command = ["claude", "-p", "Why?", "--mcp-config", ".mcp.json", "--allowedTools", "mcp__clawtrace"]
        else:
            (project.parent / ".codex").mkdir()
            more = 'required = true\nenv_vars = ["PYTHONPATH"]\n'  # begins when the server has started
            (project.parent / ".codex/config.toml").write_text(CODEX.format(url=model.url) + SETTINGS + more)
            command = ["codex", "exec", "--skip-git-repo-check", "--", "Why?"]
        done = subprocess.run(
            command, cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300
        )
        log = list(model.log)

    assert done.returncode == 0, done.stderr
    called = [call["name"] for one in log for call in one.tool_calls if call["name"] != "WaitForMcpServers"]
    assert called == offered
    answers = json.dumps(log[-1].request, ensure_ascii=False)
    assert "`ask` was never called." in answers
    assert f"written in {FILE}:8" in answers
    assert "exit 1: something failed" in answers
    assert re.search(r"pass  smoke/-/greeting/\S+/greets ", answers)
    assert "id: greets" in (project / FILE).read_text()

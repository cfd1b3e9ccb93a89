"""What coding agents read, `clawtrace mcp --skill`, `docs/llms.txt` and `docs/coding-agents.md`: everything that it names is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import clawtrace
from clawtrace.cli.commands import mcp
from clawtrace.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
SKILL = Path(clawtrace.__file__).parent / "cli/projects/SKILL.md"
LLMS = ROOT / "docs/llms.txt"
PAGE = ROOT / "docs/coding-agents.md"


@pytest.mark.parametrize("file", [SKILL, LLMS, PAGE], ids=lambda file: file.name)
def test_the_commands_that_it_names_exist(file: Path) -> None:
    named = set(re.findall(r"(?:^|`|\"\$\(|-- )clawtrace ([a-z-]+)", file.read_text(), re.MULTILINE))

    assert named
    assert named <= COMMANDS.keys()


def test_the_tools_that_they_name_exist() -> None:
    """The page lists all of them; the skill names some."""
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    named = re.search(r"\((`results`.*?) …\)", SKILL.read_text())
    assert named is not None
    assert set(re.findall(r"`(\w+)`", named[1])) <= set(listed)
    assert set(listed) == {name for name in dir(mcp) if getattr(getattr(mcp, name), "__annotations__", {}).get("return") == "str"
                           and not name.startswith("_")}  # fmt: skip


def test_the_pages_that_llms_txt_names_exist() -> None:
    links = re.findall(r"\]\(([^)]+)\)", LLMS.read_text())

    assert len(links) > 10
    assert [link for link in links if not (LLMS.parent / link).is_file()] == []


def test_it_is_short() -> None:
    assert len(SKILL.read_text()) < 4_000
    assert len(LLMS.read_text()) < 4_000


@pytest.mark.full
def test_the_skills_example_runs(tmp_path: Path) -> None:
    """All of its lines, one after the other, in a project that `clawtrace init` wrote."""
    example = re.search(r"```sh\n(.*?)```", SKILL.read_text(), re.DOTALL)
    assert example is not None
    agent = f"{sys.executable} {ROOT / 'tests/cli/agent.py'} greet"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "CLAWTRACE_"))}
    script = f"set -euo pipefail\nclawtrace init --yes --command {agent!r} --message Hello\n{example[1]}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path, env={**environment, "PATH": path}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "expected: [greet]" in done.stdout
    assert "first/-/first/1-" in done.stdout

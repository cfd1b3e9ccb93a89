"""The framework that an agent uses is found by its imports, else by its dependencies; what it lacks comes from one table."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from clawtrace.runners.starting.used_frameworks import (
    Framework,
    call_that_connects,
    frameworks,
    language_setup,
    recipe,
    used_frameworks,
)

ROOT = Path(__file__).parents[3]
PYTHON = [one for one in frameworks() if one.language == "python"]


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def names(folder: Path, command: str) -> tuple[list[str], str] | None:
    used = used_frameworks(command.split(), folder)
    return None if used is None else ([one.name for one in used.found], used.place.relative_to(folder).as_posix())


@pytest.mark.parametrize("one", PYTHON, ids=lambda one: one.name)
def test_each_is_found_by_an_import_and_by_a_dependency(one: Framework, tmp_path: Path):
    """Each framework of Python is found by each of its modules, and by its distribution in a pyproject.toml."""
    for number, module in enumerate(one.modules):
        written(tmp_path, {f"agent{number}.py": f"import {module}.inner as inner\n"})
        assert names(tmp_path, f"python agent{number}.py") == ([one.name], f"agent{number}.py")
    written(
        tmp_path,
        {"pyproject.toml": f"[project]\ndependencies = [\"{one.packages[0]}[x]>=1 ; python_version > '3'\"]\n"},
    )
    assert names(tmp_path, "my-agent") == ([one.name], "pyproject.toml")


@pytest.mark.parametrize(
    ("files", "command", "expected"),
    [
        ({"agent.py": "from google import adk\n"}, "python agent.py", (["Google ADK"], "agent.py")),
        ({"agent.py": "import lib.work\n", "lib/work.py": "import crewai\n"}, "python agent.py", (["CrewAI"], "agent.py")),
        ({"src/app/__main__.py": "from . import work\n", "src/app/work.py": "import agno\n"}, "python -m app", (["Agno"], "src/app/__main__.py")),
        ({"agent.py": "import agents\n", "agents.py": ""}, "python agent.py", None),
        ({"agent.py": "import openai, smolagents\n"}, "python agent.py", (["smolagents"], "agent.py")),
        ({"agent.py": "import openai\n"}, "uv run agent.py", (["OpenAI SDK"], "agent.py")),
        ({"agent.py": "not python (\n", "requirements-dev.txt": "# x\n-r other.txt\nPydantic_AI==2\n"}, "python agent.py", (["Pydantic AI"], "requirements-dev.txt")),
        ({"pyproject.toml": '[dependency-groups]\ndev = ["langgraph", {include-group = "x"}]\n'}, "serve", (["LangChain, LangGraph"], "pyproject.toml")),
        ({"pyproject.toml": '[tool.poetry.dependencies]\nllama-index-core = "*"\n'}, "serve", (["LlamaIndex"], "pyproject.toml")),
        ({"agent.mjs": 'import { generateText } from "ai";\n'}, "node agent.mjs", (["Vercel AI SDK"], "agent.mjs")),
        ({"a.ts": "import './b.js'\n", "b.ts": 'import("@langchain/core/messages")\n'}, "tsx a.ts", (["LangChain.js, LangGraph.js"], "a.ts")),
        ({"package.json": json.dumps({"dependencies": {"@openai/agents": "1"}})}, "npm start", (["OpenAI Agents SDK for JavaScript"], "package.json")),
        ({"package.json": json.dumps({"dependencies": {"ai": "7"}}), "agent.py": "import json\n"}, "python agent.py", None),
        ({"package.json": "[]", "pyproject.toml": "= no toml", "requirements.txt": "\0"}, "serve", None),
        ({}, "python gone.py", None),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_what_names_the_framework(files: dict[str, str], command: str, expected: object, tmp_path: Path):
    """Imports come first, own modules are followed and never taken for a package, and a broken file says nothing."""
    assert names(written(tmp_path, files), command) == expected


def test_the_dependencies_of_the_repository_count(tmp_path: Path):
    """From a folder inside of a repository its files are looked at, and none above it."""
    written(tmp_path, {"pyproject.toml": '[project]\ndependencies = ["agno"]\n', "repo/.git": "", "repo/app/x": ""})
    assert used_frameworks(["serve"], tmp_path / "repo/app") is None
    written(tmp_path, {"repo/requirements.txt": "crewai\n"})
    used = used_frameworks(["serve"], tmp_path / "repo/app")
    assert used is not None
    assert [one.name for one in used.found] == ["CrewAI"]


@pytest.mark.parametrize("one", PYTHON, ids=lambda one: one.name)
def test_an_agent_with_its_lines_lacks_nothing(one: Framework, tmp_path: Path):
    """The printed lines are Python, and an agent that has them is connected."""
    install, text = recipe([one])
    ast.parse(text)
    written(tmp_path, {"telemetry.py": text, "agent.py": f"import telemetry\nimport {one.modules[0]}\n"})
    used = used_frameworks(["python", "agent.py"], tmp_path)

    assert used is not None
    assert used.sources.sets_up
    assert not one.lines or used.sources.connects(one)
    assert set(one.install) <= set(install)


def test_telemetry_that_each_call_switches_on_connects(tmp_path: Path):
    """Versions 4 to 6 of Vercel AI's SDK: the line of version 7 is not what such an agent lacks."""
    call = 'import { generateText } from "ai";\ngenerateText({ experimental_telemetry: { isEnabled: true } });\n'
    used = used_frameworks(["node", "agent.mjs"], written(tmp_path, {"agent.mjs": call}))

    assert used is not None
    assert used.sources.connects(used.found[0])


def test_the_documentation_has_the_same_table():
    """docs/exporters.md has one row for each framework, with the packages and the call of the table, and the common lines."""
    page = (ROOT / "docs/exporters.md").read_text()
    rows = {
        cells[0].strip(): (re.findall(r"`([^`]+)`", cells[1]), cells[2])
        for line in page.splitlines()
        if line.startswith("|") and len(cells := line.strip("|").split("|")) == 3
    }

    for one in frameworks():
        install, call = rows[one.name]
        assert install == list(one.install), one.name
        assert call_that_connects(one) in call, one.name
    for language in ("python", "javascript"):
        assert language_setup(language).lines.strip() in page

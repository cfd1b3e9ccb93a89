"""The pages of docs/frameworks: their commands run as they are written, with the real framework and a scripted model."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from not_run import not_run
from page_blocks import FRAMEWORKS, installed, run_the_blocks
from pipelines import run_the_action

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
for room in ("soak", "live_agents"):
    sys.path.insert(0, str(ROOT / "tests" / room))

import agents_install  # noqa: E402
import environments  # noqa: E402

PYTHON = (
    "langchain==1.5.2", "langchain-openai==1.7.4", "openinference-instrumentation-langchain==0.1.80",
    "crewai==1.15.28", "openinference-instrumentation-crewai==1.1.21", "openinference-instrumentation-openai==0.1.66",
    "google-adk==2.13.0",
    "llama-index-core==0.14.25", "llama-index-llms-openai==0.8.3", "openinference-instrumentation-llama-index==4.6.1",
    "smolagents[openai]==1.26.0", "openinference-instrumentation-smolagents==0.1.43",
    "opentelemetry-sdk==1.44.0", "opentelemetry-exporter-otlp-proto-http==1.44.0",
)  # fmt: skip
"""One environment for all whose versions agree: a reader installs those of one page."""
JAVASCRIPT = (
    "ai@7.0.173", "@ai-sdk/openai@4.0.118", "@ai-sdk/otel@1.0.173", "zod@4.6.7",
    "@openai/agents@0.20.0", "@arizeai/openinference-instrumentation-openai-agents@0.2.15",
    "langchain@1.5.14", "@langchain/core@1.4.0", "@langchain/openai@1.5.8",
    "@arizeai/openinference-instrumentation-langchain@4.1.1",
    "@opentelemetry/sdk-node@0.223.0",
)  # fmt: skip
"""The same for Node."""


def of_python(_folder: Path) -> tuple[Path, set[str]]:
    """Return the folder of programs of the shared environment, and what is asked for in it."""
    return environments.environment("pages", PYTHON) / "venv" / "bin", set(map(name_of, PYTHON))


def of_soak(name: str) -> Callable[[Path], tuple[Path, set[str]]]:
    """Return the same for the environment of a soak: the framework has no part in the versions of others."""

    def programs(_folder: Path) -> tuple[Path, set[str]]:
        framework = environments.frameworks()[name]
        return Path(environments.program_of(framework)[0]).parent, set(map(name_of, framework.dependencies))

    return programs


def of_javascript(folder: Path) -> tuple[Path, set[str]]:
    """Return the same for Node, whose packages are above the reader's folder then."""
    packages = environments.packages("pages", JAVASCRIPT) / "node_modules"
    (folder / "node_modules").symlink_to(packages)
    return packages / ".bin", set(map(name_of, JAVASCRIPT))


def of_agent(name: str) -> Callable[[Path], tuple[Path, set[str]]]:
    """Return the same for a coding agent from npm."""

    def programs(_folder: Path) -> tuple[Path, set[str]]:
        package = agents_install.PACKAGES[name]
        return agents_install.install(package), {name_of(package)}

    return programs


def name_of(requirement: str) -> str:
    """Return a requirement without its version."""
    return re.sub(r"(?<=.)(==|@).*", "", requirement)


PAGES: dict[str, Callable[[Path], tuple[Path, set[str]]]] = {
    "claude-code": of_agent("claude_code"),
    "codex": of_agent("codex"),
    "crewai": of_python,
    "google-adk": of_python,
    "langchain-js": of_javascript,
    "langgraph": of_python,
    "llamaindex": of_python,
    "openai-agents": of_soak("openai-agents"),
    "openai-agents-js": of_javascript,
    "pydantic-ai": of_soak("pydantic-ai"),
    "smolagents": of_python,
    "vercel-ai-sdk": of_javascript,
}
"""How what a page installs comes to be there."""


def test_every_page_is_run() -> None:
    """Each page is one of those below, or OpenClaw's, which tests/live_openclaw runs."""
    assert {page.stem for page in FRAMEWORKS.iterdir()} == {*PAGES, "openclaw"}


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page(name: str, tmp_path: Path) -> None:
    """The first case passes, the planted fault fails as the page shows, and what is mended passes again."""
    text = (FRAMEWORKS / f"{name}.md").read_text(encoding="utf-8")
    try:
        programs, there = PAGES[name](tmp_path)
    except (environments.CannotInstallError, agents_install.CannotInstallError) as error:
        not_run("registry", f"the page of {name}: {error}")
    assert set(map(name_of, installed(text))) <= there

    printed = run_the_blocks(text, tmp_path, programs)

    (red,) = [one for one in printed if "FAIL" in one]
    (shown,) = re.findall(r"```\n(FAIL.*?\n)```", text, re.DOTALL)
    assert shown in red
    if name in ("pydantic-ai", "vercel-ai-sdk"):
        path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        done = run_the_action(tmp_path / "weather", {"suite": "first", "install": ""}, PATH=path)
        assert done.returncode == 0, done.stdout + done.stderr

"""The pages of docs/frameworks: the lines of each are those that `clawtrace init` prints (tests/frameworks runs the pages)."""

from __future__ import annotations

import pytest
import yaml

from clawtrace.runners.starting.used_frameworks import frameworks, language_setup, recipe
from page_blocks import FRAMEWORKS, ROOT, heredoc, installed

ROWS = {
    "crewai": ["CrewAI", "OpenAI SDK"],
    "google-adk": ["Google ADK"],
    "langchain-js": ["LangChain.js, LangGraph.js"],
    "langgraph": ["LangChain, LangGraph"],
    "llamaindex": ["LlamaIndex"],
    "openai-agents": ["OpenAI Agents SDK"],
    "openai-agents-js": ["OpenAI Agents SDK for JavaScript"],
    "pydantic-ai": ["Pydantic AI"],
    "smolagents": ["smolagents"],
    "vercel-ai-sdk": ["Vercel AI SDK"],
}
"""The rows of frameworks.yaml that a page follows; the others are of programs that export without lines of code."""
PAGES = sorted(page.stem for page in FRAMEWORKS.iterdir())


def text_of(name: str) -> str:
    return (FRAMEWORKS / f"{name}.md").read_text(encoding="utf-8")


def test_each_framework_of_javascript_has_a_page():
    """The lines of JavaScript are run by these pages only."""
    shown = {row for rows in ROWS.values() for row in rows}

    assert {one.name for one in frameworks() if one.language == "javascript"} <= shown
    assert ROWS.keys() <= set(PAGES)


@pytest.mark.parametrize("name", ROWS)
def test_a_page_has_the_lines_of_the_table(name: str):
    """What is installed for the spans, and the file that exports them, are those that `clawtrace init` prints."""
    rows = [one for wanted in ROWS[name] for one in frameworks() if one.name == wanted]
    install, lines = recipe(rows)

    assert heredoc(text_of(name), language_setup(rows[0].language).file) == lines.strip()
    assert installed(text_of(name))[-len(install) :] == install


@pytest.mark.parametrize("name", PAGES)
def test_the_workflow_of_a_page(name: str):
    """It installs what the page installs, and has the action run the suite of the page."""
    text = text_of(name)
    steps = yaml.safe_load(heredoc(text, ".github/workflows/agents.yml"))["jobs"]["eval"]["steps"]
    (run,) = [step["run"] for step in steps if "run" in step]

    if run == "pip install -r requirements.txt":
        assert heredoc(text, "requirements.txt").splitlines() == installed(text)
    else:
        assert run in ("npm ci", f"npm install -g {installed(text)[0]}")
    assert (steps[-1]["uses"], steps[-1]["with"]) == ("OWNER/clawtrace@REF", {"suite": "first"})
    assert "suite" in yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]

"""docs/coming-from.md: every check of ours on the page passes on one recorded run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import clawtrace
from clawtrace import expect

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "recordings" / "pydantic-ai" / "parallel_tools" / "traces.otlp.jsonl"
SECTIONS = dict(
    re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", (ROOT / "docs" / "coming-from.md").read_text(), re.DOTALL | re.MULTILINE)
)
CALL = re.compile(r"\w+\(.*\)(\.\w+\(.*\))*")


def checks_of(section: str) -> list[tuple[str, Any]]:
    """Every assertion in the right column of a section's table: YAML, or a call of `clawtrace.expect`."""
    found: list[tuple[str, Any]] = []
    for line in section.splitlines():
        if line.startswith("| "):
            for code in re.findall(r"`([^`]+)`", line.rstrip("| ").rsplit(" | ", 1)[-1]):
                if code.startswith("{type:"):
                    found.append((code, yaml.safe_load(code)))
                elif CALL.fullmatch(code):
                    names = {name: getattr(expect, name) for name in re.findall(r"\w+", code.partition("(")[0])}
                    found.append((code, eval(code, {}, names)))
    return found


@pytest.fixture(scope="module")
def trace() -> clawtrace.Trace:
    return clawtrace.recorded(RECORDED)


@pytest.mark.parametrize("tool", SECTIONS)
def test_the_checks_of_the_page_pass_on_a_recorded_run(trace: clawtrace.Trace, tool: str) -> None:
    checks = checks_of(SECTIONS[tool])
    rows = sum(line.startswith("| ") for line in SECTIONS[tool].splitlines()) - 1

    assert rows - 1 <= len(checks) <= rows + 1, "a row without a check, or one that was not read"
    trace.check_all(check for _, check in checks)


def test_all_tools_have_a_section() -> None:
    assert list(SECTIONS) == [
        "promptfoo", "agentevals", "LangChain's agentevals", "DeepEval", "pydantic-evals", "Tracetest", "TraceQL",
    ]  # fmt: skip

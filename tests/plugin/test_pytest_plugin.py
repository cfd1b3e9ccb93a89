"""The pytest plugin, as users run it: pytest in a separate process, with and without xdist."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

AGENTS = """
import pytest
from clawtrace.expect import tool_not_invoked, tool_sequence, tool_was_called
from plugin_agents import agent_span, call_tool, run_agent
"""

MANY = """
@pytest.mark.parametrize("number", range(12))
def test_own(clawtrace_trace, number):
    run_agent(f"tool_{number}")
    clawtrace_trace.check(tool_sequence([f"tool_{number}"], mode="strict"))
    assert clawtrace_trace.query("SELECT name FROM tool_calls") == [{"name": f"tool_{number}"}]

def test_forbidden(clawtrace_trace):
    run_agent("search", "rm")
    clawtrace_trace.check(tool_not_invoked("rm"))
"""


@pytest.mark.smoke
def test_a_failed_check_shows_the_tree_where_the_test_asked(run_pytest):
    """Pytest's report points at the line of the test, not into clawtrace, and has sentence and marked tree."""
    done = run_pytest(AGENTS + MANY, "-k", "forbidden")

    assert done.returncode == 1
    assert re.search(r">\s+clawtrace_trace\.check\(tool_not_invoked\(\"rm\"\)\)", done.stdout)
    assert "E       clawtrace.CheckFailedError: FAIL  test_forbidden · tool_not_invoked" in done.stdout
    assert "`rm` was attempted 1 time" in done.stdout
    assert re.search(r"E\s+▶ └─ execute_tool rm", done.stdout)
    assert "_capture" not in done.stdout
    assert "clawtrace_trace = <clawtrace.Trace 'test_forbidden-" in done.stdout
    assert "spans of the run" not in done.stdout


def test_a_mistake_in_a_check_is_shown_where_the_test_made_it(run_pytest):
    source = """
def test_typo(clawtrace_trace):
    clawtrace_trace.check("tool_was_caled", tool="x")

def test_name(clawtrace_trace):
    clawtrace_trace.check(tool_not_invoked("x"), "no_loops")
"""
    done = run_pytest(AGENTS + source)

    assert "Did you mean `tool_was_called`?" in done.stdout
    assert "found 'no_loops'; a type's name is asked alone, or in a mapping" in done.stdout
    assert "parse_assertion" not in done.stdout
    assert "as_assertion" not in done.stdout


def test_any_other_failure_gets_the_tree_with_it(run_pytest):
    """An ordinary assertion that fails is shown with what the agent did; one that passes is not."""
    source = """
def test_answer(clawtrace_trace):
    run_agent("search")
    assert "answer" == "another"

def test_fine(clawtrace_trace):
    run_agent("hidden")

def test_running(clawtrace_trace):
    with agent_span():
        call_tool("before_the_error")
        raise RuntimeError("broken agent")

def test_without(request):
    assert not request.config
"""
    done = run_pytest(AGENTS + source)

    assert "3 failed, 1 passed" in done.stdout
    assert len(re.findall("- clawtrace: spans of the run -", done.stdout)) == 2
    assert "└─ execute_tool search" in done.stdout
    assert "execute_tool before_the_error" in done.stdout
    assert "hidden" not in done.stdout


def test_workers_of_xdist_keep_apart_and_report_alike(run_pytest):
    """Under xdist each test has its own store and ports, and the tree of a failure reaches the controller's report."""
    child = """
import os, sys
import plugin_agents



@pytest.mark.parametrize("number", range(4))
def test_child(clawtrace_trace, number):
    clawtrace_trace.run([sys.executable, plugin_agents.__file__, "http", f"child_{number}"])
    clawtrace_trace.check(tool_sequence([f"child_{number}"], mode="strict"))
"""
    done = run_pytest(AGENTS + MANY + child, "-n", "2")

    assert "1 failed, 16 passed" in done.stdout, done.stdout
    assert re.search(r"E\s+▶ └─ execute_tool rm", done.stdout)


def test_async_tests_are_captured(run_pytest):
    """Coroutines that a plugin runs in a separate loop, which may outlive the test, are captured by each test."""
    source = """
import asyncio
pytestmark = pytest.mark.anyio

@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"

@pytest.mark.parametrize("number", range(3))
async def test_own(clawtrace_trace, number):
    with agent_span():
        await asyncio.gather(*(asyncio.to_thread(call_tool, f"tool_{number}") for _ in range(2)))
    clawtrace_trace.check(tool_sequence([f"tool_{number}"] * 2, mode="contains"))
    assert clawtrace_trace.query("SELECT DISTINCT name FROM tool_calls") == [{"name": f"tool_{number}"}]
"""
    done = run_pytest(AGENTS + source)

    assert "3 passed" in done.stdout, done.stdout


def test_settings_come_from_the_ini_file(run_pytest, tmp_path):
    """The project file is found from where the ini file says, and times are read from it."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "clawtrace.yaml").write_text("settle_ms: 1234\n")
    source = """
def test_project(clawtrace_trace):
    assert clawtrace_trace.settings.settle_ms == 1234
    assert clawtrace_trace.settings.trace_timeout_ms == 7000
    run_agent("search")
    assert clawtrace_trace.query("SELECT 1 AS n FROM spans") == []
"""
    ini = "clawtrace_project = agents\nclawtrace_trace_timeout_ms = 7000\nclawtrace_in_process = false\n"
    done = run_pytest(AGENTS + source, ini=ini)

    assert "1 passed" in done.stdout, done.stdout


def test_a_wrong_setting_is_explained(run_pytest):
    """A time that is no number is named, with what was found."""
    done = run_pytest(AGENTS + MANY, "-k", "forbidden", ini="clawtrace_settle_ms = soon\n")

    assert done.returncode == 1
    assert "`clawtrace_settle_ms` must be a whole number of milliseconds, found 'soon'" in done.stdout


def test_the_fixture_is_listed_with_its_meaning(run_pytest):
    """`pytest --fixtures` says what the fixture is."""
    done = run_pytest("", "--fixtures")

    assert re.search(r"clawtrace_trace.*\n\s+What the test and the code it runs export", done.stdout)


PAGE = Path(__file__).parents[2] / "docs" / "pytest.md"
RECORDED = Path(__file__).parents[1] / "recordings" / "pydantic-ai" / "parallel_tools" / "traces.otlp.jsonl"


@pytest.mark.parametrize("number", range(5))
def test_the_pages_examples_run(run_pytest, tmp_path, number):
    """Every block of Python on docs/pytest.md is a test file that passes, next to the agent of docs/first-case.md."""
    agent = re.search(r"<<'PYTHON'\n(.*?)PYTHON\n", PAGE.with_name("first-case.md").read_text(), re.DOTALL)
    assert agent is not None
    (tmp_path / "agent.py").write_text(agent.group(1))
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == 5
    (tmp_path / "recordings").mkdir()
    shutil.copy(RECORDED, tmp_path / "recordings" / "good.jsonl")
    done = run_pytest(examples[number])

    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_pages_failure_is_what_pytest_prints(run_pytest):
    """The report on the page is the one that its failing test gives, times aside."""
    shown = re.search(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown is not None
    source = """
def test_refund(clawtrace_trace):
    run_agent("find_order", "delete_order")
    clawtrace_trace.check(tool_not_invoked("delete_order"))
"""
    done = run_pytest(AGENTS + source)
    errors = [line for line in done.stdout.splitlines() if line.startswith("E ")]

    def plain(text: str) -> str:
        return "\n".join(re.sub(r" +[0-9.]+ (µs|ms|s)\b", " …", line).rstrip() for line in text.strip().splitlines())

    assert plain("\n".join(errors)) == plain(shown.group(1))

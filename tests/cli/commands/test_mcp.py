"""`clawtrace mcp`: the SDK's client against the real server over stdio, on a project with a verdict that failed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from click.testing import Result

pytestmark = pytest.mark.full

if TYPE_CHECKING:  # a second to import, which only the worker that runs these tests spends
    from mcp import Client

AGENT = Path(__file__).parents[1] / "agent.py"
CASE = f"""\
schema_version: 1
case_id: greeting
title: It greets
tags: [smoke]
runner:
  type: command
  command: ["{sys.executable}", "{AGENT}", greet]
input: {{messages: [{{role: user, content: Hello}}]}}
assertions:
  # She must be asked, too.
  - type: tool_was_called
    id: asks
    tool: ask
  # The end.
"""
SUITE = "schema_version: 1\nsuite_id: smoke\ntitle: Smoke\ncase_selection:\n  include_tags: [smoke]\n"
FILE = "configs/cases/greeting/test.yaml"
READS = {
    "campaigns", "results", "explain_verdict", "show_run", "query", "assertion_types", "suggest", "validate",
}  # fmt: skip


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "CLAWTRACE_", "CI"))}


def projects_files(folder: Path, case: str = CASE) -> Path:
    for name, text in (("clawtrace.yaml", "outputs: outputs\n"), ("configs/suites/smoke.yaml", SUITE), (FILE, case)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose suite ran once; nothing writes into it."""
    folder = projects_files(tmp_path_factory.mktemp("judged"))
    command = [sys.executable, "-m", "clawtrace", "eval", "--suite", "smoke", "--quiet"]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    return folder


Ask = Callable[..., Awaitable[str]]


def served(folder: Path, work: Callable[[Client, Ask], Awaitable[Any]], *flags: str) -> Any:
    """Do `work` with a client of a server in the folder; it asks for a text, which begins with `ERROR ` for a tool's error."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def run() -> Any:
        words = ["-m", "clawtrace", "mcp", *flags]
        server = StdioServerParameters(command=sys.executable, args=words, cwd=folder, env=environment())
        async with Client(stdio_client(server)) as client:

            async def ask(tool: str, **arguments: Any) -> str:
                found = await client.call_tool(tool, arguments)
                text = "".join(getattr(part, "text", "") for part in found.content)
                return f"ERROR {text}" if found.is_error else text

            return await work(client, ask)

    return asyncio.run(run())


@pytest.mark.smoke
def test_it_only_reads_unless_it_may_write(judged: Path) -> None:
    async def listed(client: Client, _: Ask) -> Any:
        return (await client.list_tools()).tools, client.instructions

    tools, said = served(judged, listed)
    assert {tool.name for tool in tools} == READS
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert "clawtrace mcp --write" in said

    tools, _ = served(judged, listed, "--write")
    assert {tool.name for tool in tools if not tool.annotations.read_only_hint} == {"run_suite", "add_assertions"}
    assert max(len(tool.description) for tool in tools) < 160


def test_a_failing_verdict_is_found_and_explained(judged: Path) -> None:
    """From the list of campaigns to the spans and the SQL of the verdict, and to the run."""

    async def work(_: Client, ask: Ask) -> list[str]:
        campaigns, results = await ask("campaigns"), await ask("results")
        verdict = results.split()[1]
        run_id = verdict.rpartition("/")[0]
        return [
            campaigns, results, await ask("explain_verdict", verdict_id=verdict), await ask("show_run", run_id=run_id),
            await ask("query", sql="SELECT name FROM tool_calls"), await ask("suggest", run_ids=[run_id]),
            await ask("results", status="pass"), await ask("validate"), await ask("assertion_types", type_name="tool_call"),
        ]  # fmt: skip

    campaigns, results, why, run, rows, suggested, passed, valid, explained = served(judged, work)
    assert "smoke/default-" in campaigns
    assert "something failed" in campaigns
    assert results.startswith("fail  smoke/")
    assert "/asks  `ask` was never called" in results
    assert f"written in {FILE}:11" in why
    assert "expected: " in why
    assert "the SQL, for clawtrace query --store outputs" in why
    assert "└─ execute_tool greet" in run
    assert rows == "name\ngreet"
    assert "expected: [greet]" in suggested
    assert "0 of 1 verdicts" in passed
    assert valid == "3 files: 0 problems, 0 warnings"
    assert "Example" in explained


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("results", {"campaign": "smoek"}, "There is no campaign 'smoek'"),
        ("show_run", {"run_id": "nobody"}, "There is no run 'nobody'"),
        ("explain_verdict", {"verdict_id": "nobody/asks"}, "has no verdict, run, case or assertion 'nobody/asks'"),
        ("query", {"sql": "DROP TABLE spans"}, "only one SELECT is allowed"),
        ("query", {"sql": "--help"}, "SELECT"),
        ("query", {"sql": "SELECT nam FROM tool_calls"}, "tool_calls(run_id"),
        ("assertion_types", {"type_name": "tool_cal"}, "Did you mean `tool_call`?"),
        ("validate", {"path": "nowhere.yaml"}, "'nowhere.yaml' does not exist"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_said_in_words(
    judged: Path, tool: str, arguments: dict[str, str], said: str
) -> None:
    async def work(_: Client, ask: Ask) -> str:
        return await ask(tool, **arguments)

    answer = served(judged, work)
    assert answer.startswith("ERROR ")
    assert said in answer
    assert not {"Traceback", "error: ", "--help` explains"} & {
        word for word in ("Traceback", "error: ") if word in answer
    }


def test_without_results_it_says_so(tmp_path: Path) -> None:
    async def work(_: Client, ask: Ask) -> str:
        return await ask("results")

    assert "There are no results in" in served(projects_files(tmp_path), work)


def test_an_assertion_is_added_and_judged(tmp_path: Path) -> None:
    """The file keeps its comments; the new verdict comes from a new judgement."""

    async def work(_: Client, ask: Ask) -> list[str]:
        more = "assertions:\n  # Once.\n  - type: tool_call\n    id: greets\n    tool: greet\n    count: {max: 1}\n"
        return [await ask("add_assertions", file=FILE, assertions=more), await ask("run_suite", suite="smoke"),
                await ask("results", status="all")]  # fmt: skip

    added, printed, results = served(projects_files(tmp_path), work, "--write")
    assert added == "1 file: 0 problems, 0 warnings"
    assert "exit 1: something failed" in printed
    assert "/greets  " in results
    statuses = {line.split()[1].rpartition("/")[2]: line.split()[0] for line in results.splitlines()[:-1]}
    assert statuses == {"asks": "fail", "greets": "pass"}
    expected = CASE.replace(
        "  # The end.", "  - type: tool_call\n    id: greets\n    tool: greet\n    count: {max: 1}\n  # The end."
    )
    assert (tmp_path / FILE).read_text() == expected


@pytest.mark.parametrize(
    ("file", "assertions", "said"),
    [
        (FILE, "- type: tool_cal\n  tool: greet\n", f"{FILE}:14:11: `assertions.1.type` unknown assertion type 'tool_cal'"),
        (FILE, "type: tool_call", "not a YAML list"),
        (FILE, "- type: [", "is not valid"),
        ("../elsewhere.yaml", "- type: no_loops\n", "is not in the project"),
        ("configs/cases/nothing.yaml", "- type: no_loops\n", "No such file"),
        ("clawtrace.yaml", "- type: no_loops\n", "clawtrace.yaml"),
    ],
)  # fmt: skip
def test_what_would_not_be_valid_is_not_written(tmp_path: Path, file: str, assertions: str, said: str) -> None:
    async def work(_: Client, ask: Ask) -> str:
        return await ask("add_assertions", file=file, assertions=assertions)

    folder = projects_files(tmp_path / "project")
    (tmp_path / "elsewhere.yaml").write_text("assertions: []\n")
    answer = served(folder, work, "--write")
    assert answer.startswith("ERROR ")
    assert said in answer
    assert (folder / FILE).read_text() == CASE
    assert (folder / "clawtrace.yaml").read_text() == "outputs: outputs\n"
    assert (tmp_path / "elsewhere.yaml").read_text() == "assertions: []\n"


@pytest.mark.full
def test_a_run_of_ten_thousand_spans_comes_in_pages(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """A page is small, names the next one, and ends with what the run comes to; recordings serve as well as a store."""
    span = {"traceId": "0" * 31 + "1", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    spans = [span | {"spanId": f"{number:016x}", "name": f"step-{number:05}"} for number in range(1, 10_001)]
    trace = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "own"}, "spans": spans}]}]}
    projects_files(tmp_path)
    (tmp_path / "big.json").write_text(json.dumps(trace))
    (tmp_path / "checks.yaml").write_text("assertions:\n  - type: tool_was_called\n    tool: ask\n")
    words = (
        "--traces",
        "big.json",
        "--one-run",
        "big",
        "--assertions",
        "checks.yaml",
        "--report",
        "json=big-results.json",
    )
    assert invoke("eval", *words).exit_code == 3

    async def work(_: Client, ask: Ask) -> list[str]:
        big, sql = {"campaign": "big-results.json"}, "SELECT name FROM spans ORDER BY name"
        pages = [await ask("query", sql=sql, **big), await ask("query", sql=sql, **big, offset=200)]
        return [*pages, await ask("show_run", run_id="big", **big)]

    first, second, shown = served(tmp_path, work)
    assert "9,984 more spans" in shown
    assert "llm calls" in shown
    assert first.splitlines()[200] == "… lines 1-200 of 10001; offset=200 shows more. The last lines:"
    assert [first.splitlines()[line] for line in (0, 1, 199, -1)] == ["name", "step-00001", "step-00199", "step-10000"]
    assert second.splitlines()[0] == "step-00200"


@pytest.mark.timeout(120)
def test_an_execution_that_is_cancelled_ends_its_agent(tmp_path: Path) -> None:
    """The agent holds a pipe: it is there until the last process that has it open is gone."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    agent = tmp_path / "agent.py"
    agent.write_text(f"import signal\npipe = open({str(pipe)!r}, 'wb', 0)\npipe.write(b'x')\nsignal.pause()\n")
    folder = projects_files(tmp_path / "project", CASE.replace(f'"{AGENT}", greet', f'"{agent}"'))

    async def work(_: Client, ask: Ask) -> bytes:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: ask("run_suite", suite="smoke"))
            held = await anyio.open_file(pipe, "rb", 0)
            assert await held.read(1) == b"x"
            group.cancel_scope.cancel()
        return await held.read(1)

    assert served(folder, work, "--write") == b""


def test_without_the_sdk_it_says_how_to_install_it(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)

    outcome = invoke("mcp")

    assert outcome.exit_code == 2
    assert "uv tool install --force '.[mcp]'" in outcome.output

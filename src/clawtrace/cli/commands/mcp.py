"""`clawtrace mcp`: an MCP server over stdio, by which a coding agent reads results, and with `--write` makes new ones.

A tool runs one command and returns what it prints, so that an agent reads what a person reads, and nothing of a command reaches
the server's own standard output. A page of the output is returned: a run of thousands of spans must not fill an agent's context.
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
from pydantic import Field

from clawtrace import __version__
from clawtrace.errors import ClawtraceError

if TYPE_CHECKING:
    from mcp.server import MCPServer

__all__ = ["command"]

_INSTALL = "`clawtrace mcp` needs the MCP SDK: in clawtrace's checkout, uv tool install --force '.[mcp]'"
_READS = (
    "clawtrace judges AI agents by their OpenTelemetry traces. A campaign is one execution of a suite of cases; each run in it has "
    "verdicts. Begin with `results`: it lists what did not pass. `explain_verdict` says why, `show_run` what the agent did. "
    "Before you write an assertion, read `assertion_types`; `suggest` proposes some from good runs. Check what you wrote with `validate`."
)
_READ_ONLY = (
    "This server only reads. To run suites and add assertions, it is started as `clawtrace mcp --write`; else edit the case "
    "file and run `clawtrace eval --suite ID` yourself."
)
_WRITES = "`add_assertions` writes into a case file, `run_suite` runs the agents and judges them."
_LINES, _CHARACTERS, _LINE, _LAST = 200, 20_000, 2_000, 10
"""Of a page: lines, characters, characters of a line, and the last lines of the output, where what it comes to stands."""

Campaign = Annotated[
    str,
    Field(
        description="Campaign as `campaigns` lists it, a suite with one campaign, or a results file; default: the newest."
    ),
]
Offset = Annotated[int, Field(ge=0, description="First line of the output to return, to go on where it was cut.")]


@click.command(epilog="Examples: clawtrace mcp; clawtrace mcp --write; clawtrace mcp --skill > SKILL.md")
@click.option("--write", is_flag=True, help="Also let the agent run suites and write assertions into case files.")
@click.option("--skill", is_flag=True, help="Print instructions for a coding agent (SKILL.md), and serve nothing.")
def command(write: bool, skill: bool) -> None:
    """Serve the project of the current folder to a coding agent, over MCP on standard input and output.

    Its tools list campaigns and verdicts, show runs, say why a verdict failed, query, validate and suggest. They change nothing,
    unless --write allows to run suites, which starts the commands of their cases, and to add assertions to the project's files.
    """
    if skill:
        from importlib.resources import files

        click.echo(files("clawtrace.cli.projects").joinpath("SKILL.md").read_text(encoding="utf-8"), nl=False)
        return
    try:
        server = _server(write=write)
    except ImportError as error:
        raise click.UsageError(_INSTALL) from error
    server.run()


def _server(*, write: bool) -> MCPServer[Any]:
    from mcp.server import MCPServer
    from mcp.types import ToolAnnotations

    instructions = f"{_READS} {_WRITES if write else _READ_ONLY}"
    server: MCPServer[Any] = MCPServer("clawtrace", instructions=instructions, version=__version__, log_level="WARNING")
    tools: list[tuple[Callable[..., Any], bool]] = [
        *(
            (tool, True)
            for tool in (campaigns, results, explain_verdict, show_run, query, assertion_types, suggest, validate)
        ),
        *((tool, False) for tool in ((run_suite, add_assertions) if write else ())),
    ]
    for tool, reads in tools:
        hints = ToolAnnotations(read_only_hint=reads, destructive_hint=False)
        server.add_tool(tool, annotations=hints, structured_output=False)
    return server


# -- what reads -------------------------------------------------------------------------------------------------------


async def campaigns(offset: Offset = 0) -> str:
    """List the stored campaigns, the newest first: when, how many runs, how many passed, what it came to."""
    return _page(await _printed("report", "--list"), offset)


async def results(
    campaign: Campaign = "",
    status: Annotated[
        Literal["not passed", "pass", "fail", "error", "inconclusive", "skip", "warn", "all"],
        Field(description="Which verdicts."),
    ] = "not passed",
    offset: Offset = 0,
) -> str:
    """List the verdicts of a campaign, one a line: status, verdict id (RUN_ID/ASSERTION_ID), what was found."""
    file = _results_file(campaign)
    rows = list(csv.DictReader(io.StringIO(await _printed("report", str(file), "--to", "csv", said=False))))
    lines = [
        f"{row['status'] or 'not asked'}  {'/'.join(filter(None, (row['run_id'], row['assertion_id'])))}  {row['message']}"
        for row in rows
        if status == "all" or (row["status"] != "pass" if status == "not passed" else row["status"] == status)
    ]
    runs = len({row["run_id"] for row in rows})
    return _page("\n".join([*lines, f"{file}: {len(lines)} of {len(rows)} verdicts, {runs} runs"]), offset)


async def explain_verdict(
    verdict_id: Annotated[str, Field(description="RUN_ID/ASSERTION_ID, as `results` lists it.")],
    campaign: Campaign = "",
    offset: Offset = 0,
) -> str:
    """Return why a verdict is as it is: expected and found, the spans that decided, a hint, and its SQL, asked again."""
    return _page(await _printed("query", f"--verdict={_results_file(campaign)}#{verdict_id}"), offset)


async def show_run(
    run_id: Annotated[str, Field(description="A run id of `results`, without the assertion.")],
    campaign: Campaign = "",
    offset: Offset = 0,
) -> str:
    """Show what a run did: its spans as a tree, calls, tokens, cost, and what is in doubt or missing."""
    return _page(await _printed("inspect", f"--run-id={run_id}", *_source(campaign)), offset)


async def query(
    sql: Annotated[str, Field(description="One SELECT; use LIMIT. A wrong name is answered with the relations.")],
    campaign: Campaign = "",
    offset: Offset = 0,
) -> str:
    """Ask read-only SQL of a campaign's runs (relations runs, spans, llm_calls, tool_calls, messages, errors …); returns CSV."""
    return _page(await _printed("query", "--format", "csv", *_source(campaign), "--", sql), offset)


async def assertion_types(
    type_name: Annotated[
        str, Field(description="Explain this type with its fields and an example; default: list all.")
    ] = "",
    offset: Offset = 0,
) -> str:
    """List the assertion types, or explain one."""
    return _page(await _printed(*(("explain", "--", type_name) if type_name else ("assertions",))), offset)


async def suggest(
    run_ids: Annotated[list[str], Field(description="Good runs of one case, as many as there are.", min_length=1)],
    campaign: Campaign = "",
    offset: Offset = 0,
) -> str:
    """Propose assertions (YAML) that hold for good runs, and say which faults they would catch."""
    return _page(await _printed("suggest", *_source(campaign), *(f"--run-id={run_id}" for run_id in run_ids)), offset)


async def validate(
    path: Annotated[str, Field(description="One file or folder; default: the whole project.")] = "", offset: Offset = 0
) -> str:
    """Check configuration files: every problem with file, line and column. Runs nothing."""
    return _page(await _printed("validate", *(("--", path) if path else ())), offset)


# -- what changes -----------------------------------------------------------------------------------------------------


async def run_suite(
    suite: Annotated[str, Field(description="Id of the suite, or its path.")],
    cases: Annotated[list[str], Field(description="Only these cases (ids or globs); default: all.")] = [],  # noqa: B006
    repeat: Annotated[int | None, Field(ge=1, description="How often each case is run.")] = None,
) -> str:
    """Run the agents of a suite and judge them. What is unchanged is judged again without a new run."""
    words = [f"--suite={suite}", *(f"--case={case}" for case in cases), *([f"--repeat={repeat}"] if repeat else [])]
    return _page(await _printed("eval", *words))


async def add_assertions(
    file: Annotated[str, Field(description="A case file of the project, or a file of assertions.")],
    assertions: Annotated[
        str, Field(description="YAML: a list of assertions, such as `- type: tool_call\\n  tool: search`.")
    ],
) -> str:
    """Append assertions to a case file. Comments stay; where the file would not be valid, nothing is written."""
    from clawtrace.cli.projects.added_assertions import with_assertions
    from clawtrace.cli.projects.new_project import replace_file
    from clawtrace.config.projects.project_file import load_project

    try:
        path, root = Path(file).resolve(), load_project().root.resolve()
        if not path.is_relative_to(root):
            raise ClawtraceError(f"{file!r} is not in the project {str(root)!r}.")
        before = path.read_text(encoding="utf-8")
        replace_file(path, with_assertions(before, assertions, file))
    except (ClawtraceError, OSError) as error:
        raise _tool_error(str(error)) from error
    try:
        return await _printed("validate", "--", str(path), valid=True)
    except BaseException:
        replace_file(path, before)
        raise


# -- running a command ------------------------------------------------------------------------------------------------


async def _printed(*words: str, said: bool = True, valid: bool = False) -> str:
    """Return what a command prints, with what it `said` on standard error, its progress left out, before it.

    Args:
        valid: whether an exit code other than 0 is an error, although it printed something.

    Raises:
        ToolError: it printed nothing, but an error.
    """
    import anyio

    line = [sys.executable, "-m", "clawtrace", *words]
    async with await anyio.open_process(line, stdin=subprocess.DEVNULL) as process:
        read: dict[str, bytes] = {}

        async def drain(name: str, stream: Any) -> None:
            read[name] = b"".join([part async for part in stream])

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(drain, "out", process.stdout)
                group.start_soon(drain, "err", process.stderr)
            code = await process.wait()
        except BaseException:
            process.terminate()  # ends the agents that it started, too
            with anyio.CancelScope(shield=True):
                await process.wait()
            raise
    out, errors = (read[name].decode(errors="replace").strip("\n") for name in ("out", "err"))
    notes = [note for note in errors.splitlines() if not note.startswith("[") and "explains the command" not in note]
    if code and (valid or not out):
        raise _tool_error("\n".join([*notes, out]).strip() or f"`clawtrace {words[0]}` ended with exit code {code}.")
    return "\n".join([*notes, out]).strip("\n") if said else out


def _tool_error(text: str) -> Exception:
    from mcp.server.mcpserver.exceptions import ToolError

    return ToolError(text.removeprefix("error: "))


def _results_file(campaign: str) -> Path:
    from clawtrace.cli.sources.stored_results import results_file

    try:
        return Path(os.path.relpath(results_file(campaign or None)))
    except ClawtraceError as error:
        raise _tool_error(str(error)) from error


def _source(campaign: str) -> Sequence[str]:
    """Return the flags that name the runs of a campaign."""
    from clawtrace.cli.sources.stored_results import flags_of_source, read_results, source_of_results

    file = _results_file(campaign)
    try:
        return flags_of_source(source_of_results(read_results(file), file.parent))
    except ClawtraceError as error:
        raise _tool_error(str(error)) from error


def _page(text: str, offset: int | None = None) -> str:
    """Return the lines from `offset` on, as many as fit, and the last ones; None where the rest cannot be had."""
    lines = [
        one if len(one) <= _LINE else f"{one[:_LINE]} … ({len(one) - _LINE} characters cut)"
        for one in text.splitlines()
    ]
    first, size, end = offset or 0, 0, offset or 0
    while end < len(lines) and end - first < _LINES and size < _CHARACTERS:
        size += len(lines[end])
        end += 1
    page = lines[first:end]
    if end < len(lines):
        more = "the rest is in `results`" if offset is None else f"offset={end} shows more"
        page.append(f"… lines {first + 1}-{end} of {len(lines)}; {more}. The last lines:")
        page += lines[max(end, len(lines) - _LAST) :]
    return "\n".join(page) or ("There is nothing." if not lines else f"There are {len(lines)} lines.")

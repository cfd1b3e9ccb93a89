"""`clawtrace run -- CMD…`: any command as a run: telemetry set, spans received, trace shown, judged when asked."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from clawtrace.cli.output.outcome import Output, also_shown, finish, output_options
from clawtrace.report.console import console_for

if TYPE_CHECKING:
    from clawtrace.campaign.running.wrap import WrappedRun
    from clawtrace.session.session import Session

__all__ = ["command"]


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: clawtrace run --assertions checks.yaml -- python agent.py 'What is the weather?'",
)
@click.argument("cmd", metavar="-- CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--assertions", type=click.Path(), metavar="FILE", help="File with the assertions for the run.")
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Time limit of the command."
)
@click.option("--passthrough", is_flag=True, help="Exit with the command's own exit code, not the verdict's.")
@output_options
def command(
    cmd: tuple[str, ...], assertions: str | None, timeout: float | None, passthrough: bool, output: Output
) -> int:
    """Run a command with its telemetry sent here, and show its trace; with --assertions judge it.

    The command keeps its terminal, and standard output is its own: trace and verdicts go to standard error. The exit
    code is the verdict's (see `clawtrace eval --help`), or the command's own without --assertions; 130 where Ctrl-C ended it, 143 where SIGTERM did.
    """
    if any(path == "-" for _, path in output.reports):
        raise click.UsageError("Standard output belongs to the command; give --report a file.")
    if assertions == "-":
        raise click.UsageError("Standard input belongs to the command; give --assertions a file.")
    if output.reports and assertions is None:
        raise click.UsageError("--report needs --assertions: without them there are no results.")
    from clawtrace.campaign.running.wrap import run_command
    from clawtrace.cli.output.progress import wait_line, working
    from clawtrace.config.loading.assertions_file import load_assertions_file
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.config.projects.session_settings import session_settings
    from clawtrace.session.session import Session

    project = load_project()
    asked = load_assertions_file(assertions, project, os.environ) if assertions is not None else None
    settings = session_settings(asked.project if asked else project)
    with Session.open(receive=True, settings=settings) as session:
        started, began = datetime.now(UTC), time.perf_counter()
        with working() as session.progress:  # silent as long as the command is at work
            wrapped = run_command(
                cmd,
                session,
                os.environ,
                assertions=asked.assertions if asked else None,
                switches=project.config.telemetry_env,
                timeout_seconds=timeout,
                waiting=lambda awaited, seconds: click.echo(wait_line(awaited, seconds), err=True),
            )
        if not output.quiet:
            _show(session, wrapped, cmd, judged=asked is not None)
        code = _judge(session, wrapped, started, (time.perf_counter() - began) * 1000, output) if asked else None
    if wrapped.interrupted and not passthrough:
        what = "verdicts are those of" if asked else "trace is"
        click.echo(f"interrupted, exit code {wrapped.interrupted}: the {what} what came until then", err=True)
        return wrapped.interrupted
    return wrapped.exit_code if passthrough or code is None else code


def _show(session: Session, wrapped: WrappedRun, cmd: tuple[str, ...], *, judged: bool) -> None:
    """Print the trace of the run; the report that follows a judged one says what else happened."""
    from clawtrace.cli.commands.inspect import print_run
    from clawtrace.cli.output.connecting import makes_no_model_call, say_how_to_connect
    from clawtrace.cli.output.progress import working

    console = console_for(sys.stderr)
    run_id = wrapped.record.run_id
    with working() as session.progress:
        inspected, trees = session.inspect_with_trees([run_id])
    (facts,) = inspected["runs"]
    console.line()
    print_run(facts, trees[run_id], console)
    why = "" if facts["spans"] else session.why_no_trace(run_id)
    if why and not judged:
        console.paragraph(why, first="  hint: ", indent="        ", style="cyan")
    if makes_no_model_call(wrapped.result):
        say_how_to_connect(cmd, console, exports=wrapped.result.has_trace, why=why)
    for note in () if judged else wrapped.result.diagnostics:
        console.paragraph(note, first="  note: ", indent="    ", style="dim")


def _judge(session: Session, wrapped: WrappedRun, started: datetime, spent: float, output: Output) -> int:
    from clawtrace.report.base import CampaignReport
    from clawtrace.verdicts.gating.gate import Gate

    results = [wrapped.result]
    shown = also_shown(session, results, quiet=output.quiet, on_a_page=session if output.shows_page(None) else None)
    report = CampaignReport.gated(None, started, results, Gate(), duration_ms=spent, **shown)
    return finish(report, output, to_stderr=True)

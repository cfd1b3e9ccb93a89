"""`clawtrace inspect`: what runs did, as facts: the tree, totals, reconciliation, and why a trace is incomplete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli.output.data import json_option, print_json, stdout_console
from clawtrace.cli.sources.source import TraceSource, chosen_runs, source_options
from clawtrace.errors import ExitCode
from clawtrace.report.console import ConsoleOutput

if TYPE_CHECKING:
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = ["command", "print_run"]

_TREES = 20
"""Runs up to which each is shown as a tree."""


@click.command(epilog="Example: clawtrace inspect recording.otlp.jsonl --json")
@click.argument("paths", nargs=-1, metavar="[TRACES]...", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@source_options
@click.option("--run-id", "wanted", multiple=True, help="Only this run. Repeatable.")
@click.option("--explain", is_flag=True, help="Also show, span by span, which rule filled each column.")
@json_option
def command(source: TraceSource, wanted: tuple[str, ...], explain: bool, as_json: bool) -> None:
    """Show the normalised facts of each run: its spans as a tree with tokens, cost and time, and its totals.

    TRACES are recordings, as with `--traces`: files, folders, or - for standard input. Of more than 20 runs the totals are shown, and
    the tree of each that `--run-id` names.

    What is not known is shown as a range, or as `?`, never as 0; what is in doubt and what may be missing is said with the
    reason (in JSON, `clawtrace.inspect/1`, null, `_low` and `_high`, `doubts` and `gaps`). With `--explain` each span names the
    dialect that read it, and each of its columns the rule and attribute it came from (in JSON under `explained`); spans that
    are one call are listed with the rule that made them one (`counted_by`), and every doubt with what would settle it.

    The exit code is 3 where no run has a span: there was nothing to show.
    """
    trees: Mapping[str, Sequence[SpanNode]] = {}
    with source.opened(wanted) as (asked, known):
        run_ids = chosen_runs(wanted, known, asked.why_gone)
        many = len(run_ids) > _TREES and not wanted and not explain
        if as_json or many:
            facts = asked.inspect(run_ids)
        else:
            facts, trees = asked.inspect_with_trees(run_ids)
        if explain:
            for run in facts["runs"]:
                run["explained"] = asked.explained(run["run_id"])
    if as_json:
        print_json(facts)
    elif many:
        _print_totals_of(facts["runs"])
    else:
        _print_runs(facts["runs"], trees, explain=explain)
    if not any(run["spans"] for run in facts["runs"]):
        _say_that_nothing_is_there(facts["runs"])
        raise click.exceptions.Exit(ExitCode.UNDECIDED)


def _print_runs(runs: Sequence[Mapping[str, Any]], trees: Mapping[str, Sequence[SpanNode]], *, explain: bool) -> None:
    console = stdout_console()
    for number, run in enumerate(runs):
        if number:
            console.line()
        print_run(run, trees[run["run_id"]], console)
        if explain:
            from clawtrace.cli.output.inspected import (
                print_calls,
                print_evidence,
                print_explained,
                print_reasons,
                print_unknown_attributes,
            )

            print_reasons(run, console)
            print_evidence(run["explained"], console)
            print_unknown_attributes(run["explained"], console)
            print_calls(run["explained"], console)
            print_explained(run["explained"], console)


def _print_totals_of(runs: Sequence[Mapping[str, Any]]) -> None:
    console = stdout_console()
    for run in runs:
        _print_head(run, console)
        _print_totals(run, console)
        if run["incomplete_because"]:
            console.line(("  incomplete", "yellow"))
    console.paragraph(f"{len(runs)} runs: `--run-id ID` shows the spans of one as a tree, and what is open of it.")


def _say_that_nothing_is_there(runs: Sequence[Mapping[str, Any]]) -> None:
    if not runs:
        click.echo("There is no run: the input contains no span.", err=True)
    else:
        what = f"The run {runs[0]['run_id']!r} has no" if len(runs) == 1 else "None of the runs has a"
        click.echo(f"{what} span: nothing was received.", err=True)


def print_run(run: Mapping[str, Any], nodes: Sequence[SpanNode], console: ConsoleOutput) -> None:
    """Print one run of `clawtrace.inspect/1` with its tree."""
    from clawtrace.cli.output.connecting import OF_NO_INSTRUMENTATION
    from clawtrace.cli.output.inspected import marks_of, print_open, print_requests
    from clawtrace.report.tree import tree_lines

    _print_head(run, console)
    for line in tree_lines(nodes, marks=marks_of(run), width=console.width):
        console.line(*line)
    if run["spans"] or any(value is not None for value in run["totals"].values()):
        _print_totals(run, console)
    if run["spans"] and not run["dialects"]:
        console.paragraph(OF_NO_INSTRUMENTATION, first="  hint: ", indent="        ", style="cyan")
    for note in run["diagnostics"]:
        console.paragraph(note, first="  note: ", indent="        ")
    for hint in run["hints"]:
        console.paragraph(hint, first="  hint: ", indent="        ", style="cyan")
    for line in run["reconciliation"]:
        console.paragraph(line, first="  counted: ", indent="    ", style="dim")
    print_requests(run["tool_requests"], console)
    print_open(run, console)
    if run["closed_by"] is None:
        console.paragraph("open: more spans may come", indent="  ", style="yellow")
    for reason in run["incomplete_because"]:
        console.paragraph(reason, first="  incomplete: ", indent="    ", style="yellow")


def _print_head(run: Mapping[str, Any], console: ConsoleOutput) -> None:
    from clawtrace.support.figures import UNKNOWN, amount, duration

    traces = f"{amount(run['spans'], 'span')} in {amount(run['traces'], 'trace')}"
    dialects = ", ".join(run["dialects"]) or "no known instrumentation"
    lasted, work, whole = (duration(run[name]) for name in ("duration_ms", "work_ms", "whole_trace_ms"))
    if UNKNOWN not in (work, whole) and work != whole:
        lasted = f"the agent's work {work}, the whole trace {whole}"
    summary = [traces, lasted, dialects] if run["spans"] else ["no spans", lasted]
    console.line((run["run_id"], "bold"), (f"  {', '.join(summary)}", ""))


def _print_totals(run: Mapping[str, Any], console: ConsoleOutput) -> None:
    from clawtrace.support.figures import cost_of, total_of

    totals: Mapping[str, Any] = run["totals"]
    calls = total_of(totals, "llm_calls")
    failed = total_of(totals, "failed_llm_attempts")
    if totals["failed_llm_attempts_low"]:
        calls += f" (+{failed} failed)"
    tokens = f"{total_of(totals, 'input_tokens')} in, {total_of(totals, 'output_tokens')} out"
    parts = [
        f"{total_of(totals, f'{key}_tokens')} {word}"
        for key, word in (
            ("cache_read", "read from cache"), ("cache_write", "written to cache"), ("reasoning", "reasoning"),
        )
        if totals[f"{key}_tokens_low"]
    ]  # fmt: skip
    tokens += f" ({', '.join(parts)})" if parts else ""
    text = (
        f"  llm calls {calls} · tool calls {total_of(totals, 'tool_calls')} · tokens {tokens} · cost {cost_of(totals)}"
    )
    text += " (replayed from a cassette: not spent)" if run["cassette"] == "replay" else ""
    console.line((text, ""))
    if totals["errors"] != 0:
        console.line((f"  errors {total_of(totals, 'errors')}", "red" if totals["errors_low"] else ""))
    if run["delegations"]:
        console.line(("  delegations " + ", ".join(f"{a or '?'} → {b or '?'}" for a, b in run["delegations"]), ""))

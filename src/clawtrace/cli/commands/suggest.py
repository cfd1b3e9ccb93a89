"""`clawtrace suggest`: assertions that hold for good runs, and which faults they would catch."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from clawtrace.cli.flags import FILE
from clawtrace.cli.sources.source import TraceSource, chosen_runs, source_options
from clawtrace.errors import InputError
from clawtrace.report.console import console_for
from clawtrace.support.figures import listed

__all__ = ["command"]

_NAMED = 3
"""Runs that a note names."""


@click.command(epilog="Example: clawtrace suggest good-runs/ --run-per-dir --out checks.yaml")
@click.argument("paths", nargs=-1, metavar="[TRACES]...", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@source_options
@click.option("--run-id", "wanted", multiple=True, metavar="ID", help="Only this run. Repeatable.")
@click.option("--out", type=FILE, help="Output file.  [default: stdout]")
@click.option("--no-mutate", is_flag=True, help="Do not measure which faults the assertions catch.")
def command(source: TraceSource, wanted: tuple[str, ...], out: Path | None, no_mutate: bool) -> None:
    """Write an assertions file that holds for all of the runs, which should be good runs of one task.

    TRACES are recordings, as with `--traces`: files, folders, or - for standard input.

    Only what the runs have in common is asserted: tools that all of them called, in the order that all of them kept, without
    an order for concurrent calls; arguments that the message states or on which the runs agree; models; bounds with a margin. The
    more runs, the less depends on chance. Then faults are put into the first run (see `clawtrace mutate`), and the mutation score
    says which of them the assertions catch.
    """
    from clawtrace.cli.projects.new_project import assertions_file_text, replace_file
    from clawtrace.cli.sources.recorded_run import observed, print_score

    with source.opened(wanted) as (asked, known):
        run_ids = chosen_runs(wanted, known, asked.why_gone)
        if not run_ids:
            raise click.UsageError("The input contains no run.")
        runs = asked.inspect(run_ids)["runs"]
        if empty := next((run for run in runs if not run["spans"]), None):
            raise click.UsageError(f"The run {empty['run_id']!r} has no span; choose others with --run-id.")
        _, found, score, _ = observed(asked, runs, scored=not no_mutate)
    text = assertions_file_text(found, run_ids)
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        try:
            replace_file(out, text)
        except OSError as error:
            raise InputError(f"{str(out)!r} cannot be written: {error.strerror or error}") from error
        which = f"the run {run_ids[0]}" if len(run_ids) == 1 else f"all {len(run_ids)} runs"
        click.echo(f"wrote {out}: {len(found)} assertions that hold for {which}", err=True)
    console = console_for(sys.stderr)
    for note in _notes(runs):
        console.paragraph(note, first="note: ", indent="      ")
    if score is not None:
        print_score(score, console)


def _notes(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why a run may not be a good one, and when there is only one."""
    notes = []
    for run in runs:
        if run["complete"] is False:
            notes.append(f"the trace of {run['run_id']} is not complete: {' '.join(run['incomplete_because'])}")
    failed = [run["run_id"] for run in runs if any(not error["recovered"] for error in run["errors"] or ())]
    if failed:
        notes.append(
            f"failures are not asserted, and a call failed in {listed(failed, _NAMED)}; leave out runs that are not good"
        )
    calling = Counter(name for run in runs for name in {call["name"] for call in run["tool_calls"] or ()} - {None})
    some = [f"`{name}` ({number} of {len(runs)})" for name, number in calling.most_common() if number < len(runs)]
    if some:
        notes.append(f"called in some of the runs only, and so not asserted: {listed(some, _NAMED)}")
    if len(runs) == 1:
        notes.append("one run does not show what varies; several good runs give assertions that fail less by chance")
    return notes

"""`clawtrace mutate`: which plausible faults of a recorded run a user's own assertions catch."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clawtrace.cli.output.data import json_option
from clawtrace.cli.sources.source import TraceSource, chosen_runs, source_options
from clawtrace.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clawtrace.campaign.mutating.mutation_score import MutationScore

__all__ = ["command"]

_SCHEMA = "clawtrace.mutations/1"


@click.command(
    short_help="Score assertions by the faults of a recorded run that they catch.",
    epilog="Example: clawtrace mutate good-run.otlp.jsonl --assertions checks.yaml --at-least 0.8",
)
@click.argument("paths", nargs=-1, metavar="[TRACES]...", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@source_options
@click.option(
    "--assertions", type=click.Path(), metavar="FILE", required=True, help="File with the assertions; - is stdin."
)
@click.option("--run-id", "wanted", multiple=True, metavar="ID", help="Only this run. Repeatable.")
@click.option(
    "--at-least",
    type=click.FloatRange(0, 1),
    metavar="SCORE",
    help="Exit with code 1 where a smaller share of the faults is caught.",
)
@json_option
def command(
    source: TraceSource, assertions: str, wanted: tuple[str, ...], at_least: float | None, as_json: bool
) -> int:
    """Put plausible faults into runs that pass, one at a time, and ask the assertions whether they notice.

    TRACES are recordings, as with `--traces`: files, folders, or - for standard input.

    The faults: a tool is not called, is called twice, changes places with the next, gets another argument, or fails
    without a word; a call uses another model; the run uses twice the tokens; an agent is not delegated to. Each is a change of the
    spans, which are then received, read and judged as any others. A fault that the telemetry would not show does not count.

    The exit code is 3 where an assertion does not pass on the run itself, or no fault could be put into it.
    """
    from clawtrace.cli.output.data import print_json
    from clawtrace.cli.output.mutations import print_score, score_of
    from clawtrace.config.loading.assertions_file import load_assertions_file
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.report.console import console_for

    loaded = load_assertions_file(assertions, load_project(Path.cwd(), os.environ), os.environ)
    with source.opened(wanted) as (asked, known):
        run_ids = chosen_runs(wanted, known, asked)
        if not run_ids:
            raise click.UsageError("The input contains no run.")
        scores = [score_of(asked, run_id, loaded.assertions.parsed, loaded.project) for run_id in run_ids]
    if as_json:
        print_json({"schema": _SCHEMA, "runs": [score.data() for score in scores]})
    else:
        console = console_for(sys.stdout)
        for number, score in enumerate(scores):
            if number:
                console.line()
            if len(scores) > 1:
                console.line((score.run_id, "bold"))
            print_score(score, console)
    return _exit_code(scores, at_least)


def _exit_code(scores: Sequence[MutationScore], at_least: float | None) -> int:
    caught, faults = sum(score.caught for score in scores), sum(len(score.mutants) for score in scores)
    if at_least is not None and faults and caught / faults < at_least:
        click.echo(f"{caught} of {faults} faults are caught; --at-least asks for {at_least:.0%}.", err=True)
        return int(ExitCode.FAILED)
    undecided = not faults or any(score.not_holding for score in scores)
    return int(ExitCode.UNDECIDED) if undecided else 0

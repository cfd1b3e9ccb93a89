"""`clawtrace mutate`: which plausible faults of a recorded run a user's own assertions catch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clawtrace.cli.flags import complete_suites
from clawtrace.cli.output.data import json_option, print_json, stdout_console
from clawtrace.cli.sources.source import TraceSource, chosen_runs, source_options
from clawtrace.errors import ExitCode

if TYPE_CHECKING:
    from clawtrace.campaign.mutating.mutations import ScoredRun

__all__ = ["command"]

_RUNS = """
SELECT run_id, case_id, model_id, workspace, started_ns FROM runs WHERE run_status = 'success' OR run_status IS NULL ORDER BY started_ns, run_id
"""


@click.command(epilog="Example: clawtrace mutate good-run.otlp.jsonl --assertions checks.yaml --at-least 0.8")
@click.argument("paths", nargs=-1, metavar="[TRACES]...", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@source_options
@click.option("--assertions", type=click.Path(), metavar="FILE", help="File with the assertions; - is stdin.")
@click.option(
    "--suite",
    metavar="ID",
    shell_complete=complete_suites,
    help="The cases of this suite, on the runs of its newest campaign, in place of --assertions.",
)
@click.option(
    "--evaluation-profile", metavar="ID|PATH", help="With --suite: what its hooks and judges need to be read."
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
    source: TraceSource,
    assertions: str | None,
    suite: str | None,
    evaluation_profile: str | None,
    wanted: tuple[str, ...],
    at_least: float | None,
    as_json: bool,
) -> int:
    """Put plausible faults into runs that pass, one at a time, and ask the assertions whether they notice.

    TRACES are recordings, as with `--traces`: files, folders, or - for standard input.

    The faults: a tool is not called, is called twice, changes places with the next, gets another argument, or fails
    without a word; a call uses another model; the run uses twice the tokens; an agent is not delegated to. Each is a change of the
    spans, which are then received, read and judged as any others. A fault that the telemetry would not show does not count.

    The exit code is 3 where an assertion does not pass on the run itself, or no fault could be put into it.
    """
    from clawtrace.cli.sources.recorded_run import print_score

    if (assertions is None) == (suite is None):
        raise click.UsageError("Give --assertions FILE, or --suite ID for the cases of a suite: one of the two.")
    if suite is None and evaluation_profile is not None:
        raise click.UsageError("--evaluation-profile goes with --suite.")
    if assertions is not None:
        scores = _of_file(assertions, source, wanted)
    else:
        scores = _of_suite(str(suite), evaluation_profile, source, wanted)
    if as_json:
        from clawtrace.campaign.mutating.mutations import Mutations

        print_json(asdict(Mutations(schema="clawtrace.mutations/1", runs=scores)))
    else:
        console = stdout_console()
        for number, score in enumerate(scores):
            if number:
                console.line()
            if len(scores) > 1:
                console.line((score.run_id, "bold"))
            print_score(score, console)
        if len(scores) > 1:
            caught, faults = _totals(scores)
            console.line()
            console.line((f"{len(scores)} runs: {caught} of {faults} faults are caught.", "bold"))
    return _exit_code(scores, at_least)


def _of_file(assertions: str, source: TraceSource, wanted: Sequence[str]) -> list[ScoredRun]:
    """Return the score of an assertions file on each run."""
    from clawtrace.cli.sources.recorded_run import score_of
    from clawtrace.config.loading.assertions_file import load_assertions_file
    from clawtrace.config.projects.project_file import load_project

    loaded = load_assertions_file(assertions, load_project(), os.environ)
    with source.opened(wanted) as (asked, known):
        run_ids = chosen_runs(wanted, known, asked.why_gone)
        if not run_ids:
            raise click.UsageError("The input contains no run.")
        return [score_of(asked, run_id, loaded.assertions.parsed, loaded.project) for run_id in run_ids]


def _of_suite(suite: str, profile: str | None, source: TraceSource, wanted: Sequence[str]) -> list[ScoredRun]:
    """Return the score of each case of a suite, on its first run of the newest campaign that succeeded.

    Raises:
        UsageError: the suite has no stored campaign, or another source is named, too.
    """
    from clawtrace.cli.sources.recorded_run import score_of
    from clawtrace.config.loading.suite_file import load_suite
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.runners.starting.templates import RunValues

    project = load_project()
    loaded = load_suite(suite, project, os.environ, evaluation_profile=profile)
    if source.is_named or source.server is not None:
        raise click.UsageError("--suite reads its own campaign; --traces, --store and --server go with --assertions.")
    campaigns = (project.outputs / "campaigns" / loaded.config.suite_id).glob("*/spans.duckdb")
    store = max(campaigns, key=lambda path: path.stat().st_mtime, default=None)
    if store is None:
        raise click.UsageError(
            f"The suite {suite!r} has no stored campaign: run `clawtrace eval --suite {suite}` first."
        )
    cases = {case.config.case_id: case for case in loaded.cases}
    scores = []
    with source._replace(store=store).opened(wanted) as (asked, known):
        chosen = set(chosen_runs(wanted, known, asked.why_gone))
        seen = set()
        for run_id, case_id, model_id, workspace, started_ns in asked.query(_RUNS).rows:
            if run_id in chosen and case_id in cases and (wanted or case_id not in seen):
                seen.add(case_id)
                case, started = cases[case_id], (started_ns or 0) / 1e9
                values = RunValues(
                    run_id, case_id, str(case.path.parent), model_id, workspace or "", started, os.environ
                )
                scores.append(score_of(asked, run_id, case.assertions.for_run(values), project))
    return scores


def _totals(scores: Sequence[ScoredRun]) -> tuple[int, int]:
    """Return how many faults were caught, and how many there were."""
    return sum(score.caught for score in scores), sum(score.faults for score in scores)


def _exit_code(scores: Sequence[ScoredRun], at_least: float | None) -> int:
    caught, faults = _totals(scores)
    if at_least is not None and faults and caught / faults < at_least:
        click.echo(f"{caught} of {faults} faults are caught; --at-least asks for {100 * at_least:g} %.", err=True)
        return int(ExitCode.FAILED)
    undecided = not faults or any(score.not_holding for score in scores)
    return int(ExitCode.UNDECIDED) if undecided else 0

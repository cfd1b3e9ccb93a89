"""`clawtrace eval`: run a suite and judge it, or judge what was recorded."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from clawtrace.cli._outcome import Output, finish, gate_options, output_options, trees_of
from clawtrace.cli._runs_that_are import RunsThatAre, judge_runs
from clawtrace.cli._source import Recordings, recordings_options

if TYPE_CHECKING:
    from clawtrace.campaign.execute import CampaignResult
    from clawtrace.campaign.expand import Plan
    from clawtrace.engine.gate import Gate
    from clawtrace.engine.thresholds import SuiteRate
    from clawtrace.report.base import CampaignReport

__all__ = ["command"]

_INTERRUPTED = 130


class _SuiteFlags(NamedTuple):
    """The flags that belong to a suite, by their names."""

    run_profile: str | None
    evaluation_profile: str | None
    case: tuple[str, ...]
    tag: tuple[str, ...]
    model: tuple[str, ...]
    repeat: int | None
    concurrency: int | None
    no_reuse: bool
    dry_run: bool

    def given(self) -> list[str]:
        return [
            f"--{name.replace('_', '-')}" for name, value in self._asdict().items() if value not in (None, (), False)
        ]


@click.command(
    short_help="Judge agents: run a suite of cases, or judge recorded traces.",
    epilog="Examples: clawtrace eval --suite smoke --report junit=results.xml; "
    "clawtrace eval --traces recordings/ --run-per-dir --assertions checks.yaml",
)
@click.option("--suite", metavar="ID|PATH", help="Run this suite: configs/suites/<ID>.yaml, or a path.")
@click.option("--run-profile", metavar="ID|PATH", help="How the suite's agents are run.")
@click.option("--evaluation-profile", metavar="ID|PATH", help="How runs are judged, and what hooks may do.")
@click.option("--case", multiple=True, metavar="ID", help="Only this case of the suite. Repeatable.")
@click.option("--tag", multiple=True, help="Only cases with this tag. Repeatable.")
@click.option("--model", multiple=True, metavar="ID", help="Only this model of the suite. Repeatable.")
@click.option("--repeat", type=click.IntRange(1), help="How often each case is run.")
@click.option("--concurrency", type=click.IntRange(1), help="How many runs at a time.")
@click.option("--no-reuse", is_flag=True, help="Run every agent, also where a stored run could stand for it.")
@click.option("--dry-run", is_flag=True, help="Print what would be run and what reused, and why; start nothing.")
@recordings_options
@click.option(
    "--store", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Judge what a span store holds."
)
@click.option("--run-id", "wanted", multiple=True, metavar="ID", help="Only this recorded or stored run. Repeatable.")
@click.option("--where", metavar="SQL", help="Only runs of which this holds, such as \"case_id = 'refund'\".")
@click.option("--assertions", metavar="FILE", help="What must be true of the recorded or stored runs.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of results.  [default for a suite: the project's outputs/]",
)
@output_options
@gate_options
def command(
    suite: str | None,
    recordings: Recordings,
    store: Path | None,
    wanted: tuple[str, ...],
    where: str | None,
    assertions: str | None,
    out: Path | None,
    output: Output,
    gate: Gate,
    **flags: Any,
) -> int:
    """Judge agents by their traces.

    With --suite every case is run, its spans are received, and its assertions are asked. With --traces the runs are
    recordings, with --store those of a span store, and --assertions says what must be true of each.

    Exit codes: 0 everything passed; 1 something failed; 2 usage or configuration, nothing was judged; 3 nothing
    failed, but something was skipped, inconclusive or not asked; 4 an agent, a precondition, a hook or the store broke.
    """
    suite_flags = _SuiteFlags(**flags)
    there = RunsThatAre(recordings, store, wanted, where)
    if suite is not None:
        if there.given() or assertions is not None:
            raise click.UsageError(
                "--suite runs agents; --traces or --store with --assertions judges runs that are there; give one of them."
            )
        return _eval_suite(suite, suite_flags, out, output, gate)
    there.check()
    if assertions is None:
        raise click.UsageError("--assertions is missing: what must be true of the runs?")
    profile, suite_flags = suite_flags.evaluation_profile, suite_flags._replace(evaluation_profile=None)
    if suite_flags.given():
        raise click.UsageError(f"{', '.join(suite_flags.given())} belongs to --suite; recordings have no such thing.")
    report = judge_runs(there, assertions, profile, gate, shows_passes=output.shows_passes or out is not None)
    if out is not None:
        _write_all(report, out)
    return finish(report, output)


def _eval_suite(suite: str, flags: _SuiteFlags, out: Path | None, output: Output, gate: Gate) -> int:
    from clawtrace.campaign.execute import execute
    from clawtrace.campaign.expand import expand
    from clawtrace.campaign.opening import open_campaign
    from clawtrace.campaign.reuse import decide
    from clawtrace.cli._progress import progress
    from clawtrace.config.project_file import load_project
    from clawtrace.config.suite_file import load_suite

    project = load_project(Path.cwd(), os.environ)
    loaded = load_suite(
        suite, project, os.environ, run_profile=flags.run_profile, evaluation_profile=flags.evaluation_profile
    )
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)
    plan = expand(
        loaded,
        cases=flags.case,
        tags=flags.tag,
        models=flags.model,
        repetitions=flags.repeat,
        concurrency=flags.concurrency,
        outputs=out,
        reports=[Path(target) for _, target in output.reports if target != "-"],
    )
    decisions = decide(plan, os.environ, reuse=not flags.no_reuse)
    if flags.dry_run:
        from clawtrace.cli._plan import print_plan

        print_plan(plan, decisions)
        return 0
    with open_campaign(plan) as session:
        with progress() as listener:
            done = execute(plan, session, os.environ, listener, decisions=decisions)
        trees = trees_of(session, done.results)
    report = _report_of(plan, done, _as_the_suite_says(gate, plan), trees)
    _write_all(report, plan.folder)
    code = finish(report, output)
    return _INTERRUPTED if done.interrupted else code


def _as_the_suite_says(gate: Gate, plan: Plan) -> Gate:
    """Return the gate with `thresholds.incomplete` of the suite, unless the flag was given."""
    thresholds = plan.suite.config.thresholds
    given = click.get_current_context().get_parameter_source("gate_incomplete") is not ParameterSource.DEFAULT
    return gate if thresholds is None or given else gate._replace(gate_incomplete=thresholds.incomplete)


def _rates_of(plan: Plan, done: CampaignResult, gate: Gate) -> list[SuiteRate]:
    from clawtrace.engine.thresholds import ThresholdRules, suite_rates

    asked = plan.suite.config.thresholds
    if asked is None:
        return []
    rules = ThresholdRules(asked.default, asked.models, asked.tolerance, asked.behavior == "informational")
    return suite_rates(done.results, list(dict.fromkeys(run.model_id for run in plan.runs)), rules, gate)


def _report_of(plan: Plan, done: CampaignResult, gate: Gate, trees: dict[str, Any]) -> CampaignReport:
    from clawtrace.report.base import CampaignReport, CaseLabels, LeftOut

    labels = {}
    for case in plan.suite.cases:
        said, agent = case.config, case.agent
        labels[said.case_id] = CaseLabels(
            said.title,
            said.description,
            said.tags,
            said.metadata,
            agent.config.agent_id if agent else None,
            said.for_judges(),
            case.file_id if case.dataset is not None else None,
        )
    left_out = [
        LeftOut(left.run.run_id, left.run.case.config.case_id, left.run.model_id, left.run.repetition, left.reason)
        for left in done.not_run
    ]
    return CampaignReport.gated(
        plan.suite.config.suite_id,
        datetime.fromtimestamp(done.started_at, UTC),
        done.results,
        gate,
        left_out=left_out,
        trees=trees,
        duration_ms=(done.ended_at - done.started_at) * 1000,
        thresholds=_rates_of(plan, done, gate),
        labels=labels,
    )


def _write_all(report: CampaignReport, folder: Path) -> None:
    """Write the report in every format into the folder of results."""
    from clawtrace.cli._reports import write_reports
    from clawtrace.report.base import formats

    write_reports([(name, str(folder / cls.file_name)) for name, cls in formats().items()], report)

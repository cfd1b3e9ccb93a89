"""`clawtrace eval --suite`: its flags, and what they do."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from clawtrace.cli.flags import complete_cases, together
from clawtrace.cli.output.outcome import Output, also_shown, finish
from clawtrace.report.console import console_for
from clawtrace.support.files import keep_private

if TYPE_CHECKING:
    from clawtrace.campaign.planning.expand import Plan
    from clawtrace.campaign.running.execute import CampaignResult
    from clawtrace.campaign.running.reuse import Decision
    from clawtrace.config.base import CassetteMode
    from clawtrace.config.loading.suite_file import LoadedSuite
    from clawtrace.config.projects.project_file import Project
    from clawtrace.config.projects.session_settings import SessionSettings
    from clawtrace.report.base import CampaignReport
    from clawtrace.report.results import LastGreen, Suite
    from clawtrace.session.session import Session
    from clawtrace.verdicts.gating.gate import Gate

__all__ = ["SuiteFlags", "eval_suite", "suite_options"]

_UNCHANGED, _DECIDED, _ALL = "unchanged", "decided", "all"
_FAILED = "it did not pass last time, and whether its agent has been edited since is unknown"
_NOTHING_TO_RUN = "Everything passed last time, and nothing has been edited since: there is nothing to run."


class SuiteFlags(NamedTuple):
    """The flags that belong to a suite, by their names."""

    run_profile: str | None
    evaluation_profile: str | None
    case: tuple[str, ...]
    tag: tuple[str, ...]
    model: tuple[str, ...]
    repeat: int | None
    concurrency: int | None
    max_cost: float | None
    max_tokens: int | None
    reuse: str | None
    no_reuse: bool
    last_failed: bool
    fail_fast: bool
    allow_unjudged: bool
    dry_run: bool
    watch: bool
    cassette_mode: CassetteMode | None

    def given(self) -> list[str]:
        """Return the flags that were given, as a user writes them."""
        given = [name for name, value in self._asdict().items() if value not in (None, (), False)]
        return [f"--{name.replace('_', '-')}" for name in given]

    def why_nothing_is_reused(self) -> str:
        """Return what keeps every stored run from standing for one; empty where nothing does."""
        if self.no_reuse:
            return "`--no-reuse`"
        in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
        return "in CI nothing is reused without `--reuse`" if in_ci and not self.reuse else ""

    def looks_back(self) -> bool:
        """Return whether the outcome of the last execution was requested."""
        return self.reuse in (_DECIDED, _ALL) or self.last_failed


suite_options = together(
    "suite_flags",
    SuiteFlags,
    click.option("--run-profile", metavar="ID|PATH", help="How the suite's agents are run."),
    click.option("--evaluation-profile", metavar="ID|PATH", help="How runs are judged, and what hooks may do."),
    click.option(
        "-k",
        "--case",
        multiple=True,
        metavar="ID|GLOB",
        shell_complete=complete_cases,
        help="Only these cases of the suite. Repeatable.",
    ),
    click.option("--tag", multiple=True, metavar="TAG|GLOB", help="Only cases with such a tag. Repeatable."),
    click.option("--model", multiple=True, metavar="ID|GLOB", help="Only these models of the suite. Repeatable."),
    click.option("--repeat", type=click.IntRange(1), help="How often each case is run."),
    click.option("-n", "--concurrency", type=click.IntRange(1), help="How many runs at a time."),
    click.option(
        "--max-cost",
        type=click.FloatRange(0, min_open=True),
        metavar="USD",
        help="Start no more runs once this much has been spent.",
    ),
    click.option(
        "--max-tokens", type=click.IntRange(1), help="Start no more runs once this many tokens have been used."
    ),
    click.option(
        "--reuse",
        type=click.Choice([_UNCHANGED, _DECIDED, _ALL]),
        is_flag=False,
        flag_value=_UNCHANGED,
        help="Which stored runs stand for new ones, also in CI (`CI` is set). unchanged: those whose inputs are all known and "
        "unchanged. decided: of these, none that was skipped or inconclusive. all: also those of which it is unknown "
        "whether their agent was edited; all are judged again.  [default: unchanged, but none in CI]",
    ),
    click.option("--no-reuse", is_flag=True, help="Run every agent."),
    click.option(
        "--last-failed", "--lf", is_flag=True, help="Run only what did not pass last time or has been edited since."
    ),
    click.option("-x", "--fail-fast", is_flag=True, help="Start no more runs once one has failed."),
    click.option(
        "--allow-unjudged", is_flag=True, help="Let a case pass although its hard expectations were not judged."
    ),
    click.option(
        "--dry-run", is_flag=True, help="Print what would run and what would be reused, and why; start nothing."
    ),
    click.option(
        "--cassette-mode",
        type=click.Choice(["record", "replay", "auto"]),
        help="Use the cases' cassettes so, whatever they say: `record` asks the providers and writes them anew.",
    ),
    click.option("--watch", is_flag=True, help="Evaluate again whenever a file of the project changes."),
)


def eval_suite(
    suite: str, flags: SuiteFlags, out: Path | None, output: Output, gate: Gate, server: str | None = None
) -> int:
    """Run and judge a suite, once or whenever it changes; return the exit code.

    Args:
        suite: its id or path.
        out: folder of results; None for the project's.
        server: address or ready file of the service that receives; None for a receiver of this process.
    """
    from clawtrace.config.projects.project_file import load_project

    keep_private()
    project = load_project()
    if not flags.watch:
        return _evaluate(suite, project, flags, out, output, gate, server)
    if flags.dry_run:
        raise click.UsageError("--watch runs the suite again and again, --dry-run starts nothing; give one of them.")
    if flags.cassette_mode == "record":
        raise click.UsageError("--watch runs the suite again and again, and each time it would be recorded anew.")
    from clawtrace.cli.evaluating.watch import watch

    ours = {(out or project.outputs).absolute(), project.outputs.absolute()}
    ours |= {Path(target).absolute() for _, target in output.reports if target != "-"}

    def again(changed: Mapping[str, Any]) -> int:
        return _evaluate(suite, load_project(), flags._replace(**changed), out, output, gate, server)

    folder = None if flags.case or flags.tag else project.configs.absolute() / "cases"
    return watch(project.root, ours, again, cases=folder)


def _evaluate(
    suite: str, project: Project, flags: SuiteFlags, out: Path | None, output: Output, gate: Gate, server: str | None
) -> int:
    from clawtrace.campaign.comparing.history import history_until
    from clawtrace.campaign.running.at_work import Budget
    from clawtrace.campaign.running.execute import execute
    from clawtrace.campaign.running.last_time import against_the_store
    from clawtrace.campaign.running.opening import open_campaign, refusals
    from clawtrace.cli.evaluating.plan import grounds_of_reuse
    from clawtrace.cli.output.campaign_progress import progress

    plan, decisions = _planned(suite, project, flags, out, output)
    gate = _as_the_suite_says(gate, plan)
    if flags.dry_run:
        from clawtrace.cli.evaluating.plan import print_plan

        plan, decisions = _as_flagged(plan, decisions, flags, gate)
        if not plan.runs:
            return _nothing_to_run(decisions)
        print_plan(plan, decisions, refusals(plan, decisions, os.environ))
        return 0
    budget = Budget(flags.max_cost, flags.max_tokens)
    with open_campaign(plan, None if server is None else _joining(server, project)) as session:
        plan, decisions = _as_flagged(plan, against_the_store(plan, decisions, session), flags, gate)
        if not plan.runs:
            return _nothing_to_run(decisions)
        with progress(quiet=output.quiet) as listener:
            done = execute(plan, session, os.environ, listener, decisions=decisions, budget=budget)
        shown = also_shown(session, done.results, quiet=output.quiet, on_a_page=session)
        last_green = _kept_history(done, decisions, gate)
        if note := session.keep_verdicts(done.results):
            click.echo(f"note: {note}", err=True)
    for sentence in [*done.blind_spots, *_stale_verdicts(done)]:
        click.echo(f"warning: {sentence}", err=True)
    report = _report_of(plan, done, gate, shown, session.clean)
    report = report._replace(
        reuse=grounds_of_reuse(plan, decisions),
        history=history_until(plan.folder, report.started_at),
        last_green=last_green,
        interrupted=done.interrupted,
    )
    if not output.quiet:
        _say_how_to_connect(plan, done)
    code = finish(report, output, folder=plan.folder)
    return done.interrupted or code


def _kept_history(
    done: CampaignResult, decisions: Mapping[str, Decision], gate: Gate
) -> dict[tuple[str, str | None], LastGreen]:
    """Add the campaign to its history; return of the cases that are not green when they last were."""
    from clawtrace.campaign.running.last_time import keep_history

    try:
        return keep_history(done, decisions, gate)
    except OSError as error:
        click.echo(f"warning: the campaign is not in its history, {error.filename!r}: {error.strerror}", err=True)
        return {}


def _joining(server: str, project: Project) -> Callable[[Path, SessionSettings], Session]:
    """Return what opens a session whose spans a running service receives.

    Raises:
        UsageError: the service is not named rightly, or its token is missing.
    """
    from clawtrace.cli.sources.source import service_at
    from clawtrace.sidecar.joined import JoinedSession, NamedService

    service_at(server)
    if project.config.receiver.tee.endpoint is not None:
        click.echo(
            "warning: `receiver: {tee: …}` of clawtrace.yaml does not apply: the service receives, and its own does",
            err=True,
        )
    return functools.partial(JoinedSession.joining, NamedService(server, os.environ.get("CLAWTRACE_SERVER_TOKEN")))


def _say_how_to_connect(plan: Plan, done: CampaignResult) -> None:
    """Print what the agent lacks of the first run that has no model call and did not pass: one cause, before its results."""
    from clawtrace.cli.output.connecting import makes_no_model_call, say_how_to_connect
    from clawtrace.model.verdict import Status
    from clawtrace.runners.inputs.named_files import rendered
    from clawtrace.runners.starting.command_turn import ProgramSettings

    failed = [one for one in done.results if not one.error and one.status not in (None, Status.PASS)]
    silent = {one.run_id: one for one in failed if makes_no_model_call(one)}
    found = next((run for run in plan.runs if run.run_id in silent), None)
    if found is None or not isinstance(settings := found.settings, ProgramSettings):
        return
    case_dir = found.case.path.parent
    words = [settings.command] if isinstance(settings.command, str) else settings.command
    known = [rendered(word, case_dir) or word for word in words]
    folder, result = case_dir / (settings.scaffold or ""), silent[found.run_id]
    why = " ".join(verdict.hint for verdict in result.verdicts)
    say_how_to_connect(known, console_for(sys.stderr), folder, exports=result.has_trace, why=why)


def _nothing_to_run(decisions: Mapping[str, Decision]) -> int:
    """Say that everything passed last time; return 3 where it is unknown whether an agent was edited since."""
    unknown = next((one.unknown for one in decisions.values() if one.unknown), "")
    if not unknown:
        click.echo(_NOTHING_TO_RUN, err=True)
        return 0
    click.echo(f"Everything passed last time; whether an agent has been edited since is unknown: {unknown}.", err=True)
    return 3


def _stale_verdicts(done: CampaignResult) -> list[str]:
    """Return one sentence on runs that were not selected, and whose verdicts are stale now; nothing where none is."""
    named = ", ".join(f"`{run_id}`" for run_id in done.stale[:3]) + (" …" if len(done.stale) > 3 else "")
    said = f"spans arrived for runs that were already judged ({named}): their verdicts are stale; judge them again"
    return [said] if done.stale else []


def _planned(
    suite: str, project: Project, flags: SuiteFlags, out: Path | None, output: Output
) -> tuple[Plan, dict[str, Decision]]:
    """Return what the suite would run, and which stored runs can be reused for it, with any outcome."""
    from clawtrace.campaign.planning.expand import expand
    from clawtrace.campaign.running.opening import last_execution
    from clawtrace.campaign.running.reuse import decide
    from clawtrace.config.loading.suite_file import load_suite

    loaded = load_suite(
        suite,
        project,
        os.environ,
        run_profile=flags.run_profile,
        evaluation_profile=flags.evaluation_profile,
        cassette_mode=flags.cassette_mode,
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
    plan = replace(plan, allows_unjudged=flags.allow_unjudged, fail_fast=plan.fail_fast or flags.fail_fast)
    last = last_execution(plan.folder)
    if last is not None and (flags.looks_back() or not last.finished):
        plan = replace(plan, execution=last.id)
    return plan, decide(plan, os.environ, reuse=flags.last_failed or not flags.why_nothing_is_reused())


def _as_flagged(
    plan: Plan, decisions: dict[str, Decision], flags: SuiteFlags, gate: Gate
) -> tuple[Plan, dict[str, Decision]]:
    """Return what to run and what becomes of it, after the flags that look at what came of it last time."""
    from clawtrace.campaign.running.last_time import not_passed, undecided_afresh

    if flags.last_failed:
        plan = not_passed(plan, decisions, gate)
        decisions = {
            name: one if flags.reuse == _ALL or not one.unknown else replace(one, stored=None, why=_FAILED)
            for name, one in decisions.items()
        }
    if flags.reuse == _DECIDED:
        decisions = undecided_afresh(plan, decisions)
    if why := flags.why_nothing_is_reused():
        decisions = {name: replace(one, stored=None, why=why) for name, one in decisions.items()}
    if flags.reuse == _ALL:  # also by spans that came after their verdicts
        decisions = {name: replace(one, judge_anew=True) for name, one in decisions.items()}
    return plan, decisions


def _as_the_suite_says(gate: Gate, plan: Plan) -> Gate:
    """Return the gate with `thresholds.incomplete` of the suite, unless the flag was given."""
    thresholds = plan.suite.config.thresholds
    given = click.get_current_context().get_parameter_source("gate_incomplete") is not ParameterSource.DEFAULT
    return gate if thresholds is None or given else gate._replace(gate_incomplete=thresholds.incomplete)


def _report_of(
    plan: Plan, done: CampaignResult, gate: Gate, shown: Mapping[str, Any], clean: Callable[[str], str]
) -> CampaignReport:
    """Return what the reports are written from; what authors say is cleaned of known secrets, as in the manifest."""
    from clawtrace.campaign.results.stored_results import rates_of_suite
    from clawtrace.report.base import AssertionLines, CampaignReport, CaseLabels, RunsSource
    from clawtrace.support.texts import cleaned

    labels = {}
    judged = plan.suite.evaluation_profile is not None and plan.suite.evaluation_profile.has_judge
    for case in plan.suite.cases:
        said, agent = case.config, case.agent
        case_labels = CaseLabels(
            said.title,
            said.description,
            said.tags,
            said.metadata,
            agent.config.agent_id if agent else None,
            {} if judged else said.for_judges(),
            case.row_of,
        )
        labels[said.case_id] = CaseLabels(*cleaned(case_labels, clean))
    return CampaignReport.gated(
        plan.suite.config.suite_id,
        datetime.fromtimestamp(done.started_at, UTC),
        done.results,
        gate,
        left_out=done.not_run,
        **shown,
        duration_ms=(done.ended_at - done.started_at) * 1000,
        thresholds=rates_of_suite(plan, done.results, gate),
        labels=labels,
        assertion_lines={
            case.config.case_id: AssertionLines(case.path, case.assertions.lines) for case in plan.suite.cases
        },
        suite=_suite_labels(plan.suite, clean),
        source=RunsSource(plan.store, project=plan.suite.project.root),
    )


def _suite_labels(suite: LoadedSuite, clean: Callable[[str], str]) -> Suite:
    from clawtrace.report.results import Suite
    from clawtrace.support.texts import cleaned

    profile = suite.evaluation_profile
    labels = {
        "title": suite.config.title,
        "metadata": suite.config.metadata,
        "models": {model.model_id: model.label for model in suite.config.models if model.label is not None},
        "agents": {case.agent.config.agent_id: case.agent.config.title for case in suite.cases if case.agent},
        "run_profile": suite.run_profile.title,
        "evaluation_profile": None if profile is None else profile.title,
    }
    return Suite(**cleaned(labels, clean))

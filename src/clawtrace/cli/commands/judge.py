"""`clawtrace judge calibrate`: how far the judges of a profile agree with people."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli.output.data import json_option, print_json, print_table
from clawtrace.errors import ConfigError, ConfigProblem, ProviderError, UsageError

if TYPE_CHECKING:
    from clawtrace.campaign.running.at_work import Budget
    from clawtrace.config.projects.project_file import Project
    from clawtrace.config.suites.evaluation_profile import EvaluationProfile
    from clawtrace.judge.calibration import Calibrated, Demands
    from clawtrace.judge.panel import Panel

__all__ = ["command"]

_SCHEMA = "clawtrace.judge-calibrate/1"
_MEASURES = {
    "kappa": "Cohen's kappa",
    "spearman": "Spearman",
    "mean_absolute_error": "mean absolute error",
    "bias": "bias",
    "spread": "spread",
    "position_bias": "bias by position",
    "length_bias": "bias by length",
}


@click.group(epilog="Example: clawtrace judge calibrate --evaluation-profile judged")
def command() -> None:
    """Measure how far the judges of an evaluation profile agree with people."""


@command.command(
    "calibrate",
    short_help="Ask judges about examples that people scored.",
    epilog="Example: clawtrace judge calibrate --evaluation-profile judged",
)
@click.option("--evaluation-profile", metavar="ID|PATH", required=True, help="Whose judges, demands and examples.")
@click.option("--concurrency", type=click.IntRange(1), default=4, show_default=True, help="Examples at the same time.")
@click.option(
    "--max-cost", metavar="USD", type=click.FloatRange(0, min_open=True), help="Ask nothing once this was spent."
)
@click.option("--no-reuse", is_flag=True, help="Ask anew what is known from an earlier calibration.")
@json_option
def calibrate(evaluation_profile: str, concurrency: int, max_cost: float | None, no_reuse: bool, as_json: bool) -> int:
    """Ask each judge of a profile about the examples that its `calibration` names, and compare with people's scores.

    Each example is asked about as often as the profile's runs are, and once more with the material in the reverse order. What
    was measured is kept next to the profile, in ID.calibration.json: `clawtrace eval` reads it, and takes no verdict from a judge
    that does not meet the profile's demands. Where `--max-cost` ends it nothing is measured; the answers are kept, and the next
    calibration asks only for the others.

    Exit codes: 0 each judge meets the demands; 1 at least one does not; 2 the profile or the examples are wrong; 4 a judge gave no
    answer.
    """
    from clawtrace.campaign.running.at_work import Budget
    from clawtrace.config.loading.judges import demands_of, panel_of
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.judge.calibration import unmet, write_record

    project = load_project()
    profile = _profile(evaluation_profile, project)
    panel, record = panel_of(profile), profile.calibration_record
    if panel is None or profile.examples_file is None or record is None:
        raise UsageError(
            f"The profile `{profile.evaluation_profile_id}` names no examples: write `calibration: {{examples: FILE}}`."
        )
    folder = project.outputs / "calibration" / profile.evaluation_profile_id
    if no_reuse:
        shutil.rmtree(folder, ignore_errors=True)
    budget = Budget(max_cost)
    measured = _measured(panel, project, profile.examples_file, folder, concurrency, budget)
    write_record(record, measured)
    demands = demands_of(profile)
    lacks = {one.judge.judge_id: unmet(demands, one.agreement) for one in measured}
    if as_json:
        _print_json(measured, lacks, demands)
    else:
        _print(measured, lacks, demands, record)
    for unseen in budget.blind_spots():
        click.echo(f"warning: {unseen}", err=True)
    return 1 if any(lacks.values()) else 0


def _profile(named: str, project: Project) -> EvaluationProfile:
    from clawtrace.config.suites.profile_files import load_evaluation_profile, profile_file

    problems: list[ConfigProblem] = []
    profile = load_evaluation_profile(
        profile_file("evaluation profile", named, project.configs), os.environ, problems, []
    )
    if profile is None or problems:
        raise ConfigError(problems)
    return profile


def _measured(
    panel: Panel, project: Project, file: Path, folder: Path, concurrency: int, budget: Budget
) -> list[Calibrated]:
    from clawtrace.campaign.running.judged_run import unavailable_judge
    from clawtrace.config.suites.evaluation_profile import load_labelled_examples
    from clawtrace.judge.calibration import CalibrationExample, calibrate, calibration_key
    from clawtrace.judge.judging import Judging
    from clawtrace.pricing.price import Pricing

    read = load_labelled_examples(file)
    examples = [
        CalibrationExample(one.example_id, [("user", one.task or read.task or "")], one.answer, one.process, one.score)
        for one in read.examples
    ]
    if why := unavailable_judge(panel, os.environ):
        raise ProviderError(why)
    judging = Judging(panel, os.environ, project.pricing or Pricing(), spent=budget.spent, took=budget.add_judging)
    return [
        calibrate(
            judging,
            judge,
            examples,
            read.for_judges(),
            calibration_key(panel, judge, file.read_bytes()),
            folder,
            concurrency,
        )
        for judge in panel.judges
    ]


def _print(measured: Sequence[Calibrated], lacks: dict[str, list[str]], demands: Demands, record: Path) -> None:
    from clawtrace.config.files.document import display

    columns = list(_MEASURES.items())
    rows: list[tuple[Any, ...]] = []
    for one in measured:
        values = asdict(one.agreement)
        shown = (_shown(values[name], values.get(f"{name}_interval")) for name, _ in columns)
        rows.append((one.judge.judge_id, one.agreement.examples, *shown))
    print_table(("judge", "examples", *(title for _, title in columns)), rows)
    click.echo()
    titles = ("judge", "example", "people", "judge's score", "answers", "reverse order")
    print_table(titles, [_example(one.judge.judge_id, row) for one in measured for row in one.scores])
    click.echo()
    for judge, reasons in lacks.items():
        if reasons:
            click.echo(f"{judge}: too little agreement: {'; '.join(reasons)}.")
        elif demands:
            click.echo(f"{judge}: meets what the profile demands.")
        else:
            click.echo(f"{judge}: the profile demands nothing of it.")
    known = [one.cost_usd for one in measured if one.cost_usd is not None]
    cost = f"${sum(known):.4f}" if len(known) == len(measured) else "cost unknown"
    click.echo(f"{sum(one.tokens for one in measured)} tokens, {cost}; kept in {display(record)}.", err=True)


def _shown(value: float | None, interval: Sequence[float] | None) -> str:
    text = "undefined" if value is None else f"{value:.2f}"
    return text if interval is None else f"{text} ({interval[0]:.2f} to {interval[1]:.2f})"


def _example(judge_id: str, row: Any) -> tuple[Any, ...]:
    answers = ", ".join(f"{score:g}" for score in row["answers"])
    return judge_id, row["example_id"], f"{row['people']:g}", f"{row['judge']:g}", answers, f"{row['reverse_order']:g}"


def _print_json(measured: Sequence[Calibrated], lacks: dict[str, list[str]], demands: Demands) -> None:
    judges = [
        {
            "judge_id": one.judge.judge_id,
            "agreement": asdict(one.agreement),
            "unmet": lacks[one.judge.judge_id],
            "scores": one.scores,
            "tokens": one.tokens,
            "cost_usd": one.cost_usd,
        }
        for one in measured
    ]
    print_json({"schema": _SCHEMA, "demands": asdict(demands), "judges": judges})

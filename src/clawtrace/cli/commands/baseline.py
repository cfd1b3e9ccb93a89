"""`clawtrace baseline`: campaigns kept under a name, and a campaign checked against one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli.flags import outputs_option
from clawtrace.cli.output.comparison import ComparisonFlags, comparison_options, print_compared
from clawtrace.cli.output.data import json_option, print_json, print_table
from clawtrace.errors import UsageError
from clawtrace.support.figures import amount, utc_text

if TYPE_CHECKING:
    from clawtrace.campaign.comparing.measured import Baseline, Measured

__all__ = ["command"]


@click.group(epilog="Example: clawtrace baseline set main outputs/campaigns/smoke/default-0123456789ab")
def command() -> None:
    """Keep a campaign under a name, and check later campaigns against it.

    A baseline is a small copy in the folder `baselines` of the results: it stays when the campaign is run again or
    deleted, and can be kept in version control.
    """


@command.command(
    "set", short_help="Keep a campaign as a baseline.", epilog="Example: clawtrace baseline set main smoke"
)
@click.argument("name")
@click.argument("campaign")
@outputs_option
def set_command(name: str, campaign: str, outputs: Path) -> None:
    """Keep CAMPAIGN as the baseline NAME; one that had the name is replaced.

    CAMPAIGN is a campaign's folder, a report.json, or a campaign or suite below the folder of results.
    """
    from clawtrace.campaign.comparing.measured import set_baseline

    baseline = set_baseline(name, campaign, outputs, utc_text(datetime.now(UTC)))
    if baseline.measured.not_run:
        click.echo(f"warning: {baseline.measured.not_run} planned runs of this campaign have no result", err=True)
    click.echo(f"`{name}` is now {_words(baseline)}.", err=True)


@command.command("show", short_help="Show one baseline, or list all.", epilog="Example: clawtrace baseline show main")
@click.argument("name", required=False)
@outputs_option
@json_option
def show(name: str | None, outputs: Path, as_json: bool) -> None:
    """Show the baseline NAME with its cases, or list all baselines."""
    from clawtrace.campaign.comparing.measured import baseline_names, load_baseline

    found = [load_baseline(one, outputs) for one in ([name] if name is not None else baseline_names(outputs))]
    if as_json:
        print_json([_as_json(baseline) for baseline in found])
    elif name is None:
        titles = ("name", "suite", "cases", "runs", "started", "campaign")
        print_table(titles, [_row(baseline) for baseline in found])
        click.echo(amount(len(found), "baseline"), err=True)
    else:
        click.echo(f"{name}: {_words(found[0])}")
        print_table(("case", "model", "passed", "failed", "undecided", "pass_rate"), _cases(found[0].measured))


@command.command(
    "check",
    short_help="Compare a campaign with a baseline.",
    epilog="Example: clawtrace baseline check --name main --fail-on pass-rate",
)
@click.argument("campaign", required=False)
@click.option("--name", help="The baseline.  [default: the only one, or the only one of the campaign's suite]")
@outputs_option
@comparison_options
def check(
    campaign: str | None,
    name: str | None,
    outputs: Path,
    flags: ComparisonFlags,
) -> int:
    """Compare CAMPAIGN with a baseline; without CAMPAIGN, what was run since in the folder the baseline came from.

    `clawtrace baseline check main` is `clawtrace baseline check --name main`, where `main` is a baseline.

    Exit codes as of `clawtrace compare`: 1 for a regression, 3 when one may have gone unseen.
    """
    from clawtrace.campaign.comparing.measured import find_campaign, is_baseline

    if campaign is not None and name is None and is_baseline(campaign, outputs):
        campaign, name = None, campaign
    second = None if campaign is None else find_campaign(campaign, outputs)
    baseline = _chosen(name, second, outputs)
    if second is None:
        campaign = baseline.source
        second = find_campaign(str(outputs / campaign), outputs)
        if second.started_at == baseline.measured.started_at:
            raise UsageError(
                f"{campaign!r} was not run again since it became the baseline `{baseline.name}`: run `clawtrace eval`, or "
                "name another campaign."
            )
    return print_compared(baseline.measured, second, (f"baseline {baseline.name}", campaign or ""), flags)


def _chosen(name: str | None, campaign: Measured | None, outputs: Path) -> Baseline:
    from clawtrace.campaign.comparing.measured import baseline_names, load_baseline

    if name is not None:
        return load_baseline(name, outputs)
    known = [load_baseline(one, outputs) for one in baseline_names(outputs)]
    meant = [one for one in known if campaign is None or one.measured.suite_id == campaign.suite_id]
    if len(meant) == 1:
        return meant[0]
    if not known:
        raise UsageError("There is no baseline yet: create one with `clawtrace baseline set NAME CAMPAIGN`.")
    names = ", ".join(f"`{one.name}`" for one in meant or known)
    raise UsageError(f"Choose a baseline with --name; there {'is' if len(meant or known) == 1 else 'are'} {names}.")


def _words(baseline: Baseline) -> str:
    measured = baseline.measured
    suite = f"suite {measured.suite_id}, " if measured.suite_id else ""
    counted = f"{amount(len(measured.cases), 'case')}, {amount(measured.runs, 'run')}"
    return f"{baseline.source}: {suite}{counted}, started {measured.started_at}"


def _row(baseline: Baseline) -> tuple[Any, ...]:
    measured = baseline.measured
    return (
        baseline.name, measured.suite_id, len(measured.cases), measured.runs, measured.started_at, baseline.source
    )  # fmt: skip


def _cases(measured: Measured) -> list[tuple[Any, ...]]:
    from clawtrace.verdicts.gating.pass_rate import rate_of

    rates = {key: rate_of(run.outcome for run in runs) for key, runs in measured.cases.items()}
    return [(*key, rate.passed, rate.failed, rate.undecided, rate.rate) for key, rate in rates.items()]


def _as_json(baseline: Baseline) -> dict[str, Any]:
    keys = ("case_id", "model_id", "passed", "failed", "undecided", "pass_rate")
    cases = [dict(zip(keys, row, strict=True)) for row in _cases(baseline.measured)]
    return {**baseline.labels(), "runs": baseline.measured.runs, "cases": cases}

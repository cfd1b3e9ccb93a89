"""`clawtrace history`: how each case went over the campaigns, when it broke and after which edit, and which cases are flaky."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click

from clawtrace.cli.output.data import json_option, print_json, stdout_console
from clawtrace.report.base import case_title
from clawtrace.report.console import ConsoleOutput, Segment, TableColumn
from clawtrace.support.figures import UNKNOWN, amount, count, dollars, duration

if TYPE_CHECKING:
    from clawtrace.campaign.comparing.history import CampaignOfCase, CaseHistory, SuiteHistory

__all__ = ["command"]

_SHOWN = 20
"""Campaigns of a trend, the newest."""
_MOST_CASES = 50
_MARKS = {0: ("✓", "green"), 1: ("✗", "red"), 4: ("!", "bold red")}
_FIGURES = {
    "time": ("duration_ms", duration),
    "tokens": ("tokens", lambda value: count(round(value))),
    "cost": ("cost_usd", dollars),
    "score": ("score", lambda value: f"{value:.1f}"),
}


@click.command(epilog="Examples: clawtrace history; clawtrace history outputs/campaigns/smoke -k 'refund*'")
@click.argument("folder", required=False)
@click.option(
    "-k", "--case", "cases", multiple=True, metavar="ID|GLOB", help="These cases, campaign by campaign. Repeatable."
)
@json_option
def command(folder: str | None, cases: tuple[str, ...], as_json: bool) -> None:
    """Show how each case with each model went, campaign by campaign: pass rate, time, tokens, cost and score.

    For a case that is not green it says when it last was and what was edited before it broke; flaky cases are ranked. FOLDER
    is a folder of results, or that of a suite or campaign below it, such as `smoke`; without it the project's results. The newest
    200 campaigns of each folder are kept.
    """
    from clawtrace.campaign.comparing.history import history_of
    from clawtrace.config.projects.project_file import load_project

    outputs = load_project().outputs
    place = Path(folder or outputs)
    found = history_of(place if place.is_dir() else outputs / "campaigns" / place)
    for suite in found.suites:
        suite.cases[:] = [one for one in suite.cases if not cases or any(fnmatchcase(one.case_id, k) for k in cases)]
    if as_json:
        print_json(found)
        return
    console = stdout_console()
    for number, suite in enumerate(one for one in found.suites if one.cases):
        if number:
            console.line()
        console.line((suite.suite_id, "bold"), (f", run profile {suite.run_profile}", ""))
        for case in suite.cases if cases else ():
            _print_case(case, console)
        if not cases:
            _print_cases(suite, console)
        _print_what_broke(suite, console)


def _print_cases(suite: SuiteHistory, console: ConsoleOutput) -> None:
    """Print one line for each case: the trend, the newest figures, and how they differ from what was usual."""
    figures = [
        title
        for title, (name, _) in _FIGURES.items()
        if any(name in p.measures for c in suite.cases for p in c.campaigns)
    ]
    rows = []
    for case in suite.cases[:_MOST_CASES]:
        points = case.campaigns[-_SHOWN:]
        style = "green" if case.broke is None else "red"
        rows.append(
            [
                (case_title(case.case_id, case.model_id), ""),
                ("".join(_mark(one)[0] for one in points), style),
                (_rate(points[-1]), style),
                *((_against(points, title), "") for title in figures),
            ]
        )
    console.table(
        [TableColumn("case"), TableColumn("trend"), *(TableColumn(one, "right") for one in ("passed", *figures))], rows
    )
    if len(suite.cases) > _MOST_CASES:
        console.line((f"{len(suite.cases) - _MOST_CASES} more cases; -k or --json shows them", "dim"))


def _print_case(case: CaseHistory, console: ConsoleOutput) -> None:
    """Print one line for each campaign."""
    figures = [title for title, (name, _) in _FIGURES.items() if any(name in one.measures for one in case.campaigns)]
    titles = ("started (UTC)", "", "passed", *figures)
    rows = []
    for one in case.campaigns:
        edited: Segment = (", ".join(one.edited), "")
        rows.append(
            [(_when(one), ""), _mark(one), (_rate(one), ""), *((_figure(one, title), "") for title in figures), edited]
        )
    console.line((case_title(case.case_id, case.model_id), "bold"))
    columns = [TableColumn(title, "left" if title == titles[0] else "right") for title in titles]
    console.table([*columns, TableColumn("edited since it was green")], rows)


def _print_what_broke(suite: SuiteHistory, console: ConsoleOutput) -> None:
    for case in suite.cases:
        if case.broke is not None:
            console.paragraph(_broke(case, case.broke), first="✗ ", indent="  ", first_style="red")
    flaky = sorted(
        (case for case in suite.cases if case.flaky), key=lambda case: -case.flaky.at_least if case.flaky else 0
    )
    for number, case in enumerate(flaky, 1):
        if case.flaky is not None:
            said = f"{case.flaky.otherwise} of {case.flaky.runs} runs with the same inputs came out otherwise"
            console.paragraph(
                f"{case_title(case.case_id, case.model_id)}: {said}.",
                first=f"flaky {number}. ",
                indent="  ",
                first_style="yellow",
            )


def _broke(case: CaseHistory, first: CampaignOfCase) -> str:
    since = sum(one.started_at >= first.started_at for one in case.campaigns)
    word = {1: "failed", 3: "was undecided", 4: "broke off"}.get(first.exit_code, "did not pass")
    quarantine = " (in quarantine)" if case.campaigns[-1].quarantined else ""
    title = f"{case_title(case.case_id, case.model_id)}{quarantine}"
    said = f"{title}: not green for {amount(since, 'campaign')}; {word} first {_when(first)} UTC"
    if case.last_green is None:
        return f"{said}; it was green in none of the campaigns that are kept."
    return f"{said}. Last green: {case.last_green.in_words}"


def _when(one: CampaignOfCase) -> str:
    return one.started_at[:16].replace("T", " ")


def _mark(one: CampaignOfCase) -> Segment:
    return ("·", "dim") if one.not_run else _MARKS.get(one.exit_code, ("?", "yellow"))


def _rate(one: CampaignOfCase) -> str:
    ran = one.passed + one.failed + one.undecided
    low, high = one.interval or (0.0, 1.0)
    return f"{one.passed}/{ran} ({100 * low:.0f}-{100 * high:.0f} %)" if ran else UNKNOWN


def _figure(one: CampaignOfCase, title: str) -> str:
    name, written = _FIGURES[title]
    return written(one.measures[name]) if name in one.measures else UNKNOWN


def _against(points: Sequence[CampaignOfCase], title: str) -> str:
    """Return the newest figure, and how many times the median of the earlier ones it is."""
    name = _FIGURES[title][0]
    earlier = [one.measures[name] for one in points[:-1] if name in one.measures]
    usual, now = median(earlier) if earlier else 0, points[-1].measures.get(name)
    times = f"{now / usual:.2f}" if now is not None and usual else "1.00"
    return _figure(points[-1], title) + (f" ×{times}" if times != "1.00" else "")

"""A comparison for people, and its exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from clawtrace.cli.flags import together
from clawtrace.errors import ExitCode
from clawtrace.report.base import case_title
from clawtrace.report.console import ConsoleOutput, Segment, TableColumn
from clawtrace.support.figures import UNKNOWN, amount, count, dollars, duration

if TYPE_CHECKING:
    from clawtrace.campaign.comparing.comparison import (
        CaseComparison,
        Comparison,
        MeasureTest,
        Outcomes,
        RateTest,
        Side,
    )
    from clawtrace.campaign.comparing.measured import Measured

__all__ = ["ALPHA", "ComparisonFlags", "comparison_options", "exit_code_of", "print_compared"]

ALPHA = 0.05
"""The usual significance level."""

FailOn = Literal["regression", "pass-rate", "never"]

_STYLE = {"regression": "red", "improvement": "green", "no evidence": "dim"}
_FIGURES: dict[str, Callable[[float], str]] = {"duration_ms": duration, "cost_usd": dollars}
_WORDS = {
    "duration_ms": "time",
    "tokens": "tokens",
    "cost_usd": "cost",
    "llm_calls": "model calls",
    "tool_calls": "tools",
}


class ComparisonFlags(NamedTuple):
    """The flags of everything that compares."""

    alpha: float
    fail_on: FailOn
    as_json: bool
    verbose: bool


comparison_options = together(
    "flags",
    ComparisonFlags,
    click.option(
        "--alpha",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=ALPHA,
        show_default=True,
        help="Significance level: how often chance alone may look like a difference.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(["regression", "pass-rate", "never"]),
        default="regression",
        show_default=True,
        help="Exit 1 on any regression, on one of a pass rate only, or always exit 0.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print JSON (clawtrace.compare/1)."),
    click.option("-v", "--verbose", is_flag=True, help="Also show measures without evidence of a change, and why."),
)


def print_compared(first: Measured, second: Measured, names: tuple[str, str], flags: ComparisonFlags) -> ExitCode:
    """Compare two campaigns, print what was found, and return the exit code."""
    from clawtrace.campaign.comparing.compare import compare
    from clawtrace.cli.output.data import print_json, stdout_console

    found = compare(first, second, names, flags.alpha)
    code = exit_code_of(found, flags.fail_on)
    if flags.as_json:
        print_json(found)
    else:
        print_comparison(found, code, stdout_console(), verbose=flags.verbose)
    return code


def exit_code_of(found: Comparison, fail_on: FailOn) -> ExitCode:
    """Return 1 for a regression that counts, 3 when one may have gone unseen, else 0."""
    rates = [suite.pass_rate.verdict for suite in found.suites] + [case.pass_rate.verdict for case in found.cases]
    if fail_on == "never":
        return ExitCode.PASSED
    if "regression" in (rates if fail_on == "pass-rate" else [found.verdict]):
        return ExitCode.FAILED
    return ExitCode.UNDECIDED if found.not_shown else ExitCode.PASSED


def print_comparison(found: Comparison, code: ExitCode, console: ConsoleOutput, *, verbose: bool) -> None:
    """Print the table, what changed in plain numbers, what could not be seen, and the exit code."""
    _print_side("first ", found.first, console)
    _print_side("second", found.second, console)
    if found.cases:
        console.line()
        _print_table(found, console, verbose=verbose)
    for line in (line for case in found.cases for line in _changes(case)):
        console.paragraph(line, first="  • ", indent="    ")
    for word, names in (("first", found.only_in_first), ("second", found.only_in_second)):
        for name in names:
            console.line((f"only in the {word}: {case_title(name.case_id, name.model_id)}", "yellow"))
    for name in found.quarantined:
        console.line((f"in quarantine, not compared: {case_title(name.case_id, name.model_id)}", "yellow"))
    console.line()
    if found.shared_runs:
        console.paragraph(
            f"{count(found.shared_runs)} of the second campaign's runs are runs of the first one, reused because none of "
            "their inputs changed.",
            first="note: ",
            indent="  ",
            style="yellow",
        )
    for reason in found.not_shown:
        console.paragraph(reason, first="not shown: ", indent="  ", style="yellow")
    console.line(
        (f"exit {int(code)}", f"bold {_STYLE['regression'] if code else 'green'}"), (f": {_meaning(found)}", "")
    )


def _meaning(found: Comparison) -> str:
    from clawtrace.campaign.comparing.statistics import REASON

    if found.verdict == "regression":
        by_definition = sum(case.pass_rate.reason == REASON for case in found.cases)
        chance = f"chance alone causes a regression in at most {found.alpha:.1%} of comparisons"
        return f"regression; {chance}" + (
            "; a case that falls from all to none is one by definition" * bool(by_definition)
        )
    seen = (
        "improvement, and no evidence of a regression" if found.verdict == "improvement" else "no evidence of a change"
    )
    return seen + ("; see above for what this cannot show" if found.not_shown else "")


def _print_side(word: str, side: Side, console: ConsoleOutput) -> None:
    suite = f"suite {side.suite_id}, " if side.suite_id else ""
    runs = f"{amount(side.cases, 'case')}, {amount(side.runs, 'run')}"
    console.line((word, "bold"), (f"  {side.name}: {suite}{runs}, started {side.started_at}", ""))


def _print_table(found: Comparison, console: ConsoleOutput, *, verbose: bool) -> None:
    models = any(suite.model_id is not None for suite in found.suites)
    titles = ["case", *["model"] * models, "", "first", "second", "change", "noticed at", "p (Holm)", "verdict"]
    right = {"first", "second", "noticed at", "p (Holm)"}
    rows: list[list[Segment]] = []
    for suite in found.suites:
        rows.append(_row(["(all cases)", *[suite.model_id or ""] * models, "passed", *_rate_cells(suite.pass_rate)]))
    for case in found.cases:
        head = [case.case_id, *[case.model_id or ""] * models]
        shows = verbose or case.pass_rate.verdict == "regression"
        rows.append(_row([*head, "passed", *_rate_cells(case.pass_rate)], shows * case.pass_rate.reason))
        for test in case.measures:
            if verbose or test.verdict != "no evidence":
                rows.append(_row([*head, _WORDS[test.measure], *_measure_cells(test)], test.reason))
    console.table([TableColumn(title, "right" if title in right else "left") for title in titles], rows)


def _row(cells: list[str], reason: str = "") -> list[Segment]:
    """Return a row whose last cell, the verdict, has its colour, and the reason why nothing was tested."""
    verdict = cells[-1] + (f": {reason}" if reason else "")
    return [(cell, "") for cell in cells[:-1]] + [(verdict, _STYLE[cells[-1]])]


def _rate_cells(test: RateTest) -> list[str]:
    change = UNKNOWN
    if test.difference is not None:
        change = f"{100 * test.difference:+.0f} points"
        if test.interval is not None:
            change += f" ({100 * test.interval[0]:+.0f} to {100 * test.interval[1]:+.0f})"
    decided = test.second.passed + test.second.failed
    limit = "never" if test.noticed_at is None else f"≤ {test.noticed_at}/{decided}"
    noticed = limit if test.verdict == "no evidence" else ""
    return [_passed(test.first), _passed(test.second), change, noticed, _p(test.adjusted_p_value), test.verdict]


def _passed(outcomes: Outcomes) -> str:
    text = f"{count(outcomes.passed)}/{count(outcomes.passed + outcomes.failed)}"
    others = [f"{count(n)} {word}" for n, word in ((outcomes.undecided, "undecided"), (outcomes.broke, "broke")) if n]
    return text + (f" (+{', '.join(others)})" if others else "")


def _measure_cells(test: MeasureTest) -> list[str]:
    figure = _FIGURES.get(test.measure, "{:,.6g}".format)
    cells = [
        UNKNOWN if one.median is None else f"{figure(one.median)} (n={one.runs})" for one in (test.first, test.second)
    ]
    change = UNKNOWN
    if test.difference is not None:
        sign = "-" if test.difference < 0 else "+"
        ratio = f", ×{test.ratio:.2f}" if test.ratio is not None else ""
        change = f"{sign}{figure(abs(test.difference))}{ratio}, delta {test.delta:+.2f}"
    limit = "never" if test.noticed_at is None else f"|delta| ≥ {test.noticed_at:.2f}"
    noticed = limit if test.verdict == "no evidence" else ""
    return [*cells, change, noticed, _p(test.adjusted_p_value), test.verdict]


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _changes(case: CaseComparison) -> Iterator[str]:
    title = case_title(case.case_id, case.model_id)
    for change in case.assertions:
        if not change.first_asked or not change.second_asked:
            word = "second" if change.second_asked else "first"
            yield f"{title} · {change.id}: only the {word} campaign has this assertion, so the pass rates answer different questions"
        else:
            yield (
                f"{title} · {change.id}: passed in {change.first_passed}/{change.first_asked}, "
                f"now in {change.second_passed}/{change.second_asked}"
                + (
                    "; it asks for something else there, so the pass rates answer different questions"
                    if change.edited
                    else ""
                )
            )

"""What people read about repetitions and thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult
from clawtrace.report.base import CampaignReport, case_title, cases_of
from clawtrace.report.console import ConsoleOutput, Segment, TableColumn
from clawtrace.support.figures import UNKNOWN, beside, count

if TYPE_CHECKING:
    from clawtrace.verdicts.gating.pass_rate import PassRate

__all__ = ["print_datasets", "print_repetitions", "print_thresholds", "rate_words"]

_STYLE = {"stable-pass": "green", "flaky": "yellow", "stable-fail": "red", None: "dim"}


def rate_words(rate: PassRate, minimum: float = 1) -> str:
    """Return a pass rate with its interval, for example ``0.67 (0.21 to 0.94)``, on their side of the `minimum`."""
    if rate.rate is None or rate.interval is None:
        return UNKNOWN
    found, low, high = (beside(one, 0, minimum, 1) for one in (rate.rate, *rate.interval))
    return f"{found} ({low} to {high})"


def print_datasets(report: CampaignReport, console: ConsoleOutput) -> None:
    """Print one line for each dataset and model: how many of its rows passed, and which did not.

    A row passed when all of its planned runs did; one that broke or was not run did not.
    """
    left_out = dict.fromkeys((left.case_id, left.model_id) for left in report.left_out)
    ran = cases_of(report.results)
    rows: dict[tuple[str, str | None], dict[str, bool]] = {}
    for case_id, model_id in dict.fromkeys((*ran, *left_out)):
        labels = report.labels.get(case_id)
        if labels is not None and labels.row_of is not None:
            from clawtrace.verdicts.gating.pass_rate import rate_of_runs

            runs = ran.get((case_id, model_id), [])
            passed = rate_of_runs(runs).passed == len(runs) and (case_id, model_id) not in left_out
            rows.setdefault((labels.row_of, model_id), {})[case_id] = passed
    if rows:
        console.line()
    for (case_id, model_id), passed_by_row in rows.items():
        others = [name for name, passed in passed_by_row.items() if not passed]
        text = f"{count(len(passed_by_row) - len(others))} of {count(len(passed_by_row))} rows passed"
        if others:
            text += f"; not: {', '.join(others[:_NAMED])}"
            text += f" and {count(len(others) - _NAMED)} more" if len(others) > _NAMED else ""
        console.paragraph(f"{case_title(case_id, model_id)}: {text}", first="rows  ", indent="      ")


_NAMED = 10
"""Rows that are named in one line; each has its own line in the table of runs."""


def print_repetitions(results: Sequence[RunResult], console: ConsoleOutput) -> None:
    """Print one row for each case that ran more than once, and each of its assertions that did not always pass.

    One that never passed, and was to pass always, has said so with its verdicts.
    """
    repeated = {key: runs for key, runs in cases_of(results).items() if len(runs) > 1}
    if not repeated:
        return
    from clawtrace.verdicts.gating.pass_rate import assertion_rates, rate_of_runs

    models = any(model_id is not None for _, model_id in repeated)
    columns = [
        TableColumn("case"),
        *[TableColumn("model")] * models,
        TableColumn("passed", "right"),
        TableColumn("rate (95 %)"),
    ]
    columns += [TableColumn("all of k pass", "right"), TableColumn("stability")]
    rows, notes = [], []
    for (case_id, model_id), runs in repeated.items():
        rate = rate_of_runs(runs)
        row: list[Segment] = [(case_id, ""), *[(model_id or "", "")] * models]
        row += [(_passed(rate), ""), (rate_words(rate), ""), (_all_pass(rate), "")]
        row.append((rate.stability or "undecided", _STYLE[rate.stability]))
        rows.append(row)
        title = case_title(case_id, model_id)
        notes += [
            f"{title} · {one.id}: {one.rate.stability or 'undecided'}, {_passed(one.rate)} passed, {rate_words(one.rate, one.minimum)}"
            + ("" if one.minimum == 1 else f", `min_pass_rate` {one.minimum:g}")
            for one in assertion_rates(runs)
            if one.rate.passed < one.rate.ran and (one.rate.passed or one.minimum < 1)
        ]
    console.line()
    console.table(columns, rows)
    for note in notes:
        console.paragraph(note, first="  • ", indent="    ")


def _passed(rate: PassRate) -> str:
    undecided = f" ({count(rate.undecided)} undecided)" if rate.undecided else ""
    return f"{count(rate.passed)}/{count(rate.ran)}{undecided}"


def _all_pass(rate: PassRate) -> str:
    """Return pass^k for the number of runs that ran, or for three of them: what a user of several steps in a row sees."""
    chances = rate.pass_hat
    k = 3 if 3 in chances else rate.ran
    return f"{beside(chances[k], 0, 1)} (k={k})" if k in chances else UNKNOWN


def print_thresholds(report: CampaignReport, console: ConsoleOutput) -> None:
    """Print one line for each threshold of the suite."""
    words = {True: ("reached", "green"), False: ("BELOW", "red"), None: ("UNDECIDED", "yellow")}
    for found in report.thresholds:
        word, style = words[found.reached]
        only_shown = " (informational)" if found.informational else ""
        if found.code(report.gate) is ExitCode.PASSED and not found.reached:
            style = "yellow"
        held = ", held against the lower end" if report.gate.gate_on == "lower-bound" else ""
        console.line((f"threshold {word}", style), (f"{only_shown}: {found.sentence}{held}", ""))

"""Verdicts that did not pass, reduced to the facts that formats for other tools show."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Status, Verdict
from clawtrace.report.base import CampaignReport, cases_of, without_reasons

__all__ = ["NOTHING_ASKED", "NotPassed", "is_decided", "not_passed", "shown_value", "title_of_run", "without_figures"]


_FIGURE = re.compile(r"(`[^`]*`)|\d[\d.,]*(?: h \d+ min| min \d+ s| (?:ms|µs|s|min|h|%))?")
NOTHING_ASKED = "Nothing was evaluated: the run has no assertion."


class NotPassed(NamedTuple):
    """A verdict that did not pass, a run without verdicts, or a missed threshold."""

    title: str
    """Case, model and repetition."""
    rule: str
    """Type of the assertion; ``run`` where no verdict was reached, ``threshold`` for a pass rate of the suite."""
    assertion_id: str
    """Empty where no verdict was reached."""
    word: str
    """The status, or why there is none."""
    level: ExitCode
    """The exit code that it asks for: `PASSED` where it is only shown."""
    message: str
    """One plain sentence."""
    file: str | None = None
    """The file of the assertion, relative to the working directory; None when unknown."""
    line: int | None = None
    verdict: Verdict | None = None
    run: RunResult | None = None


def not_passed(report: CampaignReport) -> Iterator[NotPassed]:
    """Yield everything that did not pass, in the order of the runs."""
    for runs in cases_of(report.results).values():
        rated = {one.place: one.code for one in report.gate.rates(runs)}
        for run in runs:
            yield from _of_run(run, report, rated)
    for left in report.left_out:
        title = _title(left.case_id, left.model_id, left.repetition)
        level = ExitCode.PASSED if left.quarantined else ExitCode.UNDECIDED
        yield NotPassed(title, "run", "", "not run", level, left.reason)
    for rate in report.thresholds:
        if not rate.reached:
            title = f"{report.suite_id or 'suite'}{f' [{rate.model_id}]' if rate.model_id else ''}"
            yield NotPassed(title, "threshold", "", "threshold missed", rate.code(report.gate), rate.sentence)
    if not report.results and not report.left_out:
        title = report.suite_id or "clawtrace"
        yield NotPassed(title, "run", "", "not run", report.exit_code, "There was no run.")


def _of_run(run: RunResult, report: CampaignReport, rated: Mapping[int, ExitCode]) -> Iterator[NotPassed]:
    """Yield what did not pass of a run; the pass rate over the repetitions decides where an assertion has one."""
    title = title_of_run(run)
    if run.error:
        level = ExitCode.PASSED if run.quarantined else ExitCode.BROKEN
        yield NotPassed(title, "run", "", "error", level, run.error, run=run)
    elif not run.verdicts:
        level = ExitCode.PASSED if run.quarantined else ExitCode.UNDECIDED
        yield NotPassed(title, "run", "", "no assertions", level, NOTHING_ASKED, run=run)
    for place, standing in enumerate(run.standings):
        if standing.status is Status.PASS:
            continue
        verdict = run.verdicts[place]
        level = report.gate.of_verdict(standing)
        level = ExitCode.PASSED if run.quarantined else level if level is ExitCode.BROKEN else rated.get(place, level)
        found = report.line_of(run.case_id, verdict.id)
        file, line = (None, None) if found is None else (Path(os.path.relpath(found[0])).as_posix(), found[1])
        word = "known failure" if verdict.known_failure else verdict.status.value
        message = without_reasons(run, verdict)
        yield NotPassed(title, verdict.type, verdict.id, word, level, message, file, line, verdict, run)


def title_of_run(run: RunResult) -> str:
    """Return what a person calls a run."""
    return _title(run.case_id, run.model_id, run.repetition)


def _title(case_id: str, model_id: str | None, repetition: int) -> str:
    return f"{case_id}{f' [{model_id}]' if model_id else ''}{f' #{repetition}' if repetition > 1 else ''}"


def shown_value(value: Any) -> str:
    """Return a value as JSON; unknown where there is none."""
    return "unknown" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def without_figures(text: str | None) -> str:
    """Return a text without its figures; those in a name stay."""
    return _FIGURE.sub(r"\1#", text or "")


def is_decided(one: NotPassed) -> bool:
    """Return whether it is known that something is wrong."""
    if one.verdict is None:
        return one.level in (ExitCode.FAILED, ExitCode.BROKEN)
    return one.verdict.known_failure or one.verdict.status in (Status.FAIL, Status.ERROR)

"""`--report comment=PATH`: a comment on a pull request: what got worse and why, what it costs, and links; three lines when green."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TextIO
from urllib.parse import quote, urlencode

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult
from clawtrace.report._failures import NotPassed, is_decided, not_passed
from clawtrace.report.base import CampaignReport, Report, case_title, cases_of
from clawtrace.report.markdown import MARK, escaped, sentence, write_failures
from clawtrace.report.terminal import MEANING
from clawtrace.support.figures import amount, count, dollars, duration
from clawtrace.verdicts.gating.pass_rate import rate_of_runs

__all__ = ["HIDDEN_MARK", "CommentReport"]

HIDDEN_MARK = "<!-- clawtrace -->"
"""The first line, by which the comment is found again and replaced."""
_MOST_CHARACTERS = 60_000
"""GitHub refuses a comment of more than 65 536."""
_MOST_WORSE = 30
_FIGURES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "cost_usd": ("cost", dollars),
    "tokens": ("tokens", lambda tokens: count(round(tokens))),
    "duration_ms": ("time", duration),
}


class CommentReport(Report):
    """What a reviewer reads: against the baseline where there is one, and the culprit of each failure."""

    format = "comment"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write GitHub's Markdown, within the length of a comment."""
        passed = sum(rate_of_runs(runs).passed for runs in cases_of(report.results).values())
        name = f"{escaped(report.suite_id)}: " if report.suite_id else ""
        mark = MARK.get(report.exit_code, "💥")
        head = f"{HIDDEN_MARK}\n### {mark} {name}{passed} of {amount(len(report.results), 'run')} passed\n"
        said = (
            []
            if report.exit_code is ExitCode.PASSED
            else [f"Exit code {int(report.exit_code)}: {MEANING[report.exit_code]}."]
        )
        if report.comparison is not None:
            said.append(_against(report.comparison))
        if report.page_url:
            said.append(f"[Page]({_address(report)})")
        pieces = [f"{head}{' '.join(said)}\n", *_worse(report)]
        if report.exit_code is not ExitCode.PASSED:
            failures = io.StringIO()
            write_failures(report, failures)
            pieces += filter(None, re.split(r"(?<=</details>\n)", failures.getvalue()))
        _write_within(pieces, stream)


def _write_within(pieces: list[str], stream: TextIO) -> None:
    """Write the pieces for which there is room, and how many there were more."""
    room = _MOST_CHARACTERS
    for place, piece in enumerate(pieces):
        room -= len(piece)
        if room < 0:
            stream.write(f"\n{count(len(pieces) - place)} more: see the other reports.\n")
            return
        stream.write(piece)


def _against(comparison: Any) -> str:
    """Say in one sentence whether anything got worse, and how cost, tokens and time of a run of each case differ."""
    worse = sum(case.verdict == "regression" for case in comparison.cases)
    lower = sum(case.verdict != "regression" and (case.pass_rate.difference or 0) < 0 for case in comparison.cases)
    words = [f"{amount(worse, 'case')} got worse"] if worse else []
    words += [f"{amount(lower, 'case')} passed less often, which may be chance"] if lower else []
    changes = [text for name in _FIGURES if (text := _change(comparison, name))]
    figures = f" One run of each case: {', '.join(changes)}." if changes else ""
    unseen = f" {sentence(' '.join(comparison.not_shown))}" if comparison.not_shown else ""
    return f"Against {escaped(comparison.first.name)}: {' and '.join(words) or 'no case got worse'}.{figures}{unseen}"


def _change(comparison: Any, name: str) -> str:
    """Return how the sum of the medians of all cases that both campaigns know differs; empty where none is known."""
    known = [
        (one.first.median, one.second.median)
        for case in comparison.cases
        for one in case.measures
        if one.measure == name and one.first.median is not None and one.second.median is not None
    ]
    before, now = (sum(values) for values in zip(*known, strict=True)) if known else (0, 0)
    if not before and not now:
        return ""
    word, written = _FIGURES[name]
    share = f" ({(now - before) / before:+.0%})" if before else ""
    return f"{word} {written(before)} → {written(now)}{share}"


def _worse(report: CampaignReport) -> Iterator[str]:
    """Yield the cases that pass less often than in the baseline, or cost more, with the culprit of each."""
    comparison: Any = report.comparison
    cases = [] if comparison is None else [
        case for case in comparison.cases if case.verdict == "regression" or (case.pass_rate.difference or 0) < 0
    ]  # fmt: skip
    culprits: dict[tuple[str, str | None], NotPassed] = {}
    for one in not_passed(report):
        if one.run is not None and is_decided(one):
            culprits.setdefault((one.run.case_id, one.run.model_id), one)
    for place, case in enumerate(cases[:_MOST_WORSE]):
        rate, mark = case.pass_rate, "❌" if case.verdict == "regression" else "⚠️"
        counts = [f"{side.passed}/{side.passed + side.failed}" for side in (rate.first, rate.second)]
        grew = [
            f"{_FIGURES[one.measure][0]} {' → '.join(_FIGURES[one.measure][1](side.median) for side in (one.first, one.second))}"
            for one in case.measures
            if one.verdict == "regression" and one.measure in _FIGURES
        ]
        changes = ", ".join([f"passed {counts[0]} → {counts[1]}"] * bool(rate.difference) + grew)
        title = escaped(case_title(case.case_id, case.model_id))
        text = f"- {mark} **{title}**: {changes or 'more model or tool calls'}\n"
        text += "".join(_culprit(report, culprits.get((case.case_id, case.model_id))))
        yield text if place else f"\n#### What got worse\n\n{text}"
    if len(cases) > _MOST_WORSE:
        yield f"\n{len(cases) - _MOST_WORSE} more cases got worse.\n"


def _culprit(report: CampaignReport, one: NotPassed | None) -> Iterator[str]:
    """Yield the assertion's sentence with its line, and the span that decided."""
    if one is None or one.run is None:
        return
    link = f" [run]({_address(report, one.run, one)})" if report.page_url else ""
    where = f" (<code>{escaped(one.file)}:{one.line}</code>)" if one.file else ""
    what = f"<code>{escaped(one.assertion_id)}</code> " if one.assertion_id else ""
    yield f"  - {what}{sentence(one.message)}{where}{link}\n"
    for item in one.verdict.evidence[:1] if one.verdict is not None else ():
        yield f"  - span <code>{escaped(item.name)}</code>: {sentence(item.why)}\n"


def _address(report: CampaignReport, run: RunResult | None = None, one: NotPassed | None = None) -> str:
    """Return the address of the page, or of a run and its culprit in it."""
    if run is None:
        return quote(report.page_url, safe=":/?&=%#~.@")
    chosen = {} if one is None or one.verdict is None else {"verdict": one.verdict.id}
    query = f"?{urlencode(chosen)}" if chosen else ""
    return f"{_address(report)}#/run/{quote(run.run_id, safe='')}{query}"

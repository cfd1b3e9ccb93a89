"""`--report markdown=PATH`: every case and what did not pass, for `$GITHUB_STEP_SUMMARY`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TextIO
from urllib.parse import quote

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import Evidence, RunResult
from clawtrace.report._failures import NotPassed, not_passed, shown_value, without_figures
from clawtrace.report.base import CampaignReport, Report, cases_of
from clawtrace.report.console import clean, cut
from clawtrace.report.terminal import MEANING
from clawtrace.support.figures import UNKNOWN, amount, cost_of, duration, listed, tokens_of
from clawtrace.verdicts.gating.pass_rate import rate_of_runs

__all__ = ["MARK", "MarkdownReport", "culprit", "escaped", "headline", "page_address", "sentence", "write_failures"]

_MOST_CASES = 100
_GRAVEST = [ExitCode.BROKEN, ExitCode.FAILED, ExitCode.UNDECIDED, ExitCode.USAGE, ExitCode.PASSED]
_MOST_FAILURES = 30
"""A step's summary on GitHub holds one megabyte, a comment 65 536 characters."""
_MOST_TITLES = 10
_LONGEST = 500
MARK = {ExitCode.PASSED: "✅", ExitCode.FAILED: "❌", ExitCode.UNDECIDED: "⚠️"}
_MARKUP = re.compile(r"[\\`*_{}\[\]#.|~<>@:/&]")


class MarkdownReport(Report):
    """Cases in a table, then what did not pass; equal failures are one entry."""

    format = "markdown"
    file_name = "report.md"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write GitHub's Markdown; what comes from a trace is text in it, never markup."""
        stream.write(f"### {' '.join(headline(report))}\n\n")
        took = f" in {duration(report.duration_ms)}" if report.duration_ms is not None else ""
        stream.write(f"Exit code {int(report.exit_code)}: {MEANING[report.exit_code]}{took}.\n")
        cases = list(cases_of(report.results).items())
        if cases:
            stream.write(
                "\n| | case | model | passed | spans | tokens | cost | time |\n|---|---|---|--:|--:|--:|--:|--:|\n"
            )
        for (case_id, model_id), runs in cases[:_MOST_CASES]:
            stream.write(_row(case_id, model_id, runs))
        if len(cases) > _MOST_CASES:
            stream.write(f"\n{len(cases) - _MOST_CASES} more cases are in the other reports.\n")
        write_failures(report, stream)
        for rate in report.thresholds:
            stream.write(f"\n{MARK.get(rate.code(report.gate), '💥')} {sentence(rate.sentence)}\n")


def headline(report: CampaignReport) -> tuple[str, str]:
    """Return a mark, and how many runs of the suite passed."""
    passed = sum(rate_of_runs(runs).passed for runs in cases_of(report.results).values())
    name = f"{escaped(report.suite_id)}: " if report.suite_id else ""
    return MARK.get(report.exit_code, "💥"), f"{name}{passed} of {amount(len(report.results), 'run')} passed"


def _row(case_id: str, model_id: str | None, runs: Sequence[RunResult]) -> str:
    rate = rate_of_runs(runs)
    broken = any(run.error for run in runs)
    mark = "💥" if broken else "❌" if rate.failed else "⚠️" if rate.undecided or not rate.ran else "✅"
    known = [{name for name, value in run.totals.items() if isinstance(value, int | float)} for run in runs]
    totals = {name: sum(run.totals[name] for run in runs) for name in set.intersection(*known)}
    times = [run.duration_ms for run in runs if run.duration_ms is not None]
    mean = f"{'⌀ ' * (len(runs) > 1)}{duration(sum(times) / len(times))}" if times else UNKNOWN
    figures = [f"{sum(run.spans for run in runs)}", tokens_of(totals), cost_of(totals), mean]
    cells = [mark, escaped(case_id), escaped(model_id or ""), f"{rate.passed}/{len(runs)}", *figures]
    return f"| {' | '.join(cells)} |\n"


def write_failures(report: CampaignReport, stream: TextIO) -> None:
    """Write what did not pass, the gravest first, folded; failures that differ in figures only are one entry."""
    alike: dict[tuple[ExitCode, str, str, str], list[NotPassed]] = defaultdict(list)
    for one in not_passed(report):
        alike[one.level, one.assertion_id, one.word, without_figures(one.message)].append(one)
    if alike:
        stream.write("\n#### What did not pass\n")
    for entry in sorted(alike.values(), key=lambda of: _GRAVEST.index(of[0].level))[:_MOST_FAILURES]:
        _write_failure(entry, report, stream)
    if len(alike) > _MOST_FAILURES:
        stream.write(f"\n{len(alike) - _MOST_FAILURES} more are in the other reports.\n")


def _write_failure(alike: Sequence[NotPassed], report: CampaignReport, stream: TextIO) -> None:
    first = alike[0]
    whose = escaped(first.title) if len(alike) == 1 else amount(len(alike), "run")
    mark = "⚪" if first.level is ExitCode.PASSED else MARK.get(first.level, "💥")
    what = f"<code>{escaped(first.assertion_id)}</code> " if first.assertion_id else ""
    example = "for example: " if any(one.message != first.message for one in alike) else ""
    stream.write(
        f"\n<details><summary>{mark} {whose}: {what}{escaped(first.word)}: {example}{sentence(first.message)}</summary>\n\n"
    )
    if len(alike) > 1:
        stream.write(f"{listed([escaped(one.title) for one in alike], _MOST_TITLES)}\n\n")
    if report.page_url and first.run is not None:
        stream.write(f"- [Run]({page_address(report, first)}) in the page\n")
    if first.file is not None:
        stream.write(f"- written in <code>{escaped(first.file)}</code>, line {first.line}\n")
    if first.verdict is not None:
        verdict = first.verdict
        stream.write(f"- expected: <code>{escaped(cut(shown_value(verdict.expected), _LONGEST))}</code>\n")
        stream.write(f"- actual: <code>{escaped(cut(shown_value(verdict.actual), _LONGEST))}</code>\n")
        for item in verdict.evidence[:3]:
            stream.write(f"- {culprit(item)}\n")
        if verdict.hint:
            stream.write(f"- {sentence(verdict.hint)}\n")
    stream.write("\n</details>\n")


def culprit(item: Evidence) -> str:
    """Return a span's name and id, where there is one, and what it shows."""
    name = f"<code>{escaped(cut(item.name, _LONGEST))}</code>" if item.name else ""
    span = f"span {name} <code>{item.span_id}</code>: " if item.span_id else f"{name}: " if name else ""
    return f"{span}{sentence(item.why)}"


def page_address(report: CampaignReport, one: NotPassed | None = None) -> str:
    """Return the address of the page, or in it of the run and the verdict that did not pass."""
    address = quote(report.page_url, safe=":/?&=%#~.@")
    if one is None or one.run is None:
        return address
    chosen = f"?verdict={quote(one.verdict.id, safe='')}" if one.verdict is not None else ""
    return f"{address}#/run/{quote(one.run.run_id, safe='')}{chosen}"


def sentence(text: str) -> str:
    """Return a sentence with what stands between backticks as code, and no other markup."""
    parts = re.split(r"`([^`\n]+)`", cut(text, _LONGEST))
    return "".join(f"<code>{escaped(part)}</code>" if place % 2 else escaped(part) for place, part in enumerate(parts))


def escaped(text: str) -> str:
    """Return text in one line that Markdown and HTML show as it is: no markup, link, mention or reference to an issue."""
    shown = _MARKUP.sub(lambda match: f"&#{ord(match.group())};", clean(re.sub(r"\s+", " ", text)))
    return re.sub(r"&#(64|35);", r"&#\1;<!-- -->", shown)

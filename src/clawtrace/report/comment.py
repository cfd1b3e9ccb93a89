"""`--report comment=PATH`: a comment on a pull request: what got worse and why, what it costs, and links; short when green."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TextIO

from clawtrace.errors import ExitCode
from clawtrace.report._failures import NotPassed, is_decided, not_passed
from clawtrace.report.base import CampaignReport, Report, case_title
from clawtrace.report.markdown import culprit, escaped, headline, page_address, sentence, write_failures
from clawtrace.report.terminal import MEANING
from clawtrace.support.figures import amount, count, dollars, duration

__all__ = ["CommentReport"]

_MOST_CHARACTERS = 60_000
"""GitHub refuses a comment of more than 65 536; the action adds its mark and a link."""
_NO_ROOM = "\nThere is no room for more: see the page and the other reports.\n"


def _rounded(number: float) -> str:
    return count(round(number))


_FIGURES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "cost_usd": ("cost", dollars),
    "tokens": ("tokens", _rounded),
    "duration_ms": ("time", duration),
    "llm_calls": ("model calls", _rounded),
    "tool_calls": ("tool calls", _rounded),
}


class CommentReport(Report):
    """A comment for reviewers: what got worse than the baseline, if there is one, and the cause of each failure."""

    format = "comment"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write GitHub's Markdown, within the length of a comment."""
        mark, title = headline(report)
        head = [f"### {mark} {f'[{title}]({page_address(report)})' if report.page_url else title}"]
        green = report.exit_code is ExitCode.PASSED
        if not green:
            head.append(f"Exit code {int(report.exit_code)}: {MEANING[report.exit_code]}.")
        if report.comparison is not None:
            head.append(_against(report.comparison))
        pieces = ["\n".join([*head, ""]), *_worse(report)]
        if not green:
            failures = io.StringIO()
            write_failures(report, failures)
            pieces += re.split(r"(?<=</details>\n)", failures.getvalue())
        room = _MOST_CHARACTERS
        for piece in pieces:
            room -= len(piece)
            if room < 0:
                stream.write(_NO_ROOM)
                return
            stream.write(piece)


def _grown(case: Any) -> list[Any]:
    """Return the measures that got worse; time is not among them, because machines differ."""
    return [one for one in case.measures if one.verdict == "regression" and one.measure != "duration_ms"]


def _got_worse(case: Any) -> bool:
    return case.pass_rate.verdict == "regression" or bool(_grown(case))


def _passed_less(case: Any) -> bool:
    return case.pass_rate.verdict == "regression" or (case.pass_rate.difference or 0) < 0


def _against(comparison: Any) -> str:
    """Print in one line whether anything got worse, how cost, tokens and time differ, and what the comparison cannot show."""
    worse = sum(map(_got_worse, comparison.cases))
    chance = sum(_passed_less(case) and not _got_worse(case) for case in comparison.cases)
    words = [f"{amount(worse, 'case')} got worse"] if worse else []
    words += [f"{amount(chance, 'case')} passed less often, which may be chance"] if chance else []
    if any(suite.pass_rate.verdict == "regression" for suite in comparison.suites):
        words.append("all cases together passed less often")
    changes = [text for name in ("cost_usd", "tokens", "duration_ms") if (text := _change(comparison, name))]
    figures = f" Each case once: {'; '.join(changes)}." if changes else ""
    unseen = "".join(f" {sentence(reason)}" for reason in comparison.not_shown)
    return f"Against {escaped(comparison.first.name)}: {'; '.join(words) or 'no case got worse'}.{figures}{unseen}"


def _change(comparison: Any, name: str) -> str:
    """Return how the sum of the medians of the cases differs; empty where both campaigns know none."""
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
    partly = f", known of {len(known)} of {len(comparison.cases)} cases" if len(known) < len(comparison.cases) else ""
    return f"{word} {written(before)} → {written(now)}{share}{partly}"


def _worse(report: CampaignReport) -> Iterator[str]:
    """Yield the cases that passed less often than in the baseline or took more, each with its culprits."""
    comparison: Any = report.comparison
    cases = [] if comparison is None else [case for case in comparison.cases if _got_worse(case) or _passed_less(case)]
    failures: dict[tuple[str, str | None], dict[str, NotPassed]] = {}
    for one in not_passed(report):
        if one.run is not None and is_decided(one):
            failures.setdefault((one.run.case_id, one.run.model_id), {}).setdefault(one.assertion_id, one)
    for place, case in enumerate(cases):
        changes = []
        if _passed_less(case):
            sides = case.pass_rate.first, case.pass_rate.second
            changes.append(f"passed {' → '.join(f'{side.passed}/{side.passed + side.failed}' for side in sides)}")
        for one in _grown(case):
            word, written = _FIGURES[one.measure]
            changes.append(f"{word} {written(one.first.median)} → {written(one.second.median)}")
        chance = "" if _got_worse(case) else ", which may be chance"
        text = f"- **{escaped(case_title(case.case_id, case.model_id))}**: {', '.join(changes)}{chance}\n"
        text += "".join(_culprits(report, case, failures.get((case.case_id, case.model_id), {})))
        yield text if place else f"\n#### What got worse\n\n{text}"


def _culprits(report: CampaignReport, case: Any, failures: Mapping[str, NotPassed]) -> Iterator[str]:
    """Yield a line for each assertion that failed more often: its sentence, where it is written, and its span."""
    fell = {
        one.id
        for one in case.assertions
        if not one.first_asked or one.second_passed * one.first_asked < one.first_passed * one.second_asked
    }
    for one in failures.values():
        if fell and one.assertion_id and one.assertion_id not in fell:
            continue
        what = f"<code>{escaped(one.assertion_id)}</code>: " if one.assertion_id else ""
        where = f" (<code>{escaped(one.file)}:{one.line}</code>)" if one.file else ""
        link = f" [Run]({page_address(report, one)})" if report.page_url else ""
        yield f"  - {what}{sentence(one.message)}{where}{link}\n"
        for item in one.verdict.evidence[:1] if one.verdict is not None else ():
            yield f"    {culprit(item)}\n"

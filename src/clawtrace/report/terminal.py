"""The report for people: a table of runs, then each thing that did not pass with its spans, then what it comes to."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Status
from clawtrace.report._repeated_text import print_datasets, print_repetitions, print_thresholds
from clawtrace.report._verdict_text import STATUS_STYLE, print_verdicts, title_of
from clawtrace.report.base import CampaignReport, case_title, status_of
from clawtrace.report.console import ConsoleOutput, Segment, TableColumn, cut
from clawtrace.support.figures import UNKNOWN, amount, cost_of, count, dollars, duration, tokens_of, total_of

if TYPE_CHECKING:
    from clawtrace.report.results import NotRun

__all__ = ["MEANING", "print_campaign", "print_runs", "print_scores", "print_summary", "print_verdicts"]

MEANING = {
    ExitCode.PASSED: "all assertions passed",
    ExitCode.FAILED: "something failed",
    ExitCode.USAGE: "nothing was judged",
    ExitCode.UNDECIDED: "nothing failed, but something could not be judged",
    ExitCode.BROKEN: "an error: agent, precondition, assertion, store or report",
}
_MOST_READ = 10_000
"""Verdicts of which the types are counted; each must be made for it."""
_MOST_TYPES = 8
_MOST_LINES = 20
"""Lines of one kind, one a run."""
_MOST_ROWS = 100
"""Rows of the table of runs: of more runs those that did not pass come, and no more than these."""
_MOST_SAID = 600
"""Characters of one message that are shown."""
_COUNTED = {
    Status.PASS: "passed",
    Status.FAIL: "failed",
    Status.ERROR: "with an error",
    Status.INCONCLUSIVE: "inconclusive",
    Status.SKIP: "skipped",
    Status.WARN: "warned",
    None: "without assertions",
}


def print_campaign(
    report: CampaignReport, console: ConsoleOutput, *, verbose: bool = False, quiet: bool = False
) -> None:
    """Print the table of runs, what did not pass, how repetitions differ, and the summary.

    Args:
        verbose: also what passed, and the SQL of each verdict.
        quiet: thresholds and the summary only.
    """
    if not quiet:
        if report.results:
            print_runs(report.results, console, whole=verbose)
        for hint in report.hints:
            console.paragraph(hint, first="hint: ", indent="      ", style="cyan")
        print_verdicts(report, console, verbose=verbose)
        _print_last_green(report, console)
        print_scores(report.results, console)
        print_conversations(report.results, console, verbose=verbose)
        retried = [f"{title_of(one)}: {'; '.join(one.retried)}" for one in report.results if one.retried]
        _print_each(retried, "RETRIED  ", console)
        _print_left_out(report.left_out, console)
        _print_unjudged(report, console)
        print_datasets(report, console)
        print_repetitions(report.results, console)
        _print_rerun(report, console)
        if report.page is not None:
            console.line(("Page: ", "dim"), (_near(report.page), "dim"))
        console.line()
    print_thresholds(report, console)
    print_summary(report, console)


def print_runs(results: Sequence[RunResult], console: ConsoleOutput, *, whole: bool = True) -> None:
    """Print one row a run; the columns `model` and `rep` appear where they say something.

    Args:
        whole: also where there are many.
    """
    models = any(result.model_id is not None for result in results)
    repeated = any(result.repetition != 1 for result in results)
    columns = [TableColumn("case"), TableColumn("status")]
    columns[1:1] = [TableColumn("model")] * models + [TableColumn("rep", "right")] * repeated
    columns += [TableColumn(title, "right") for title in ("spans", "calls", "tokens", "cost", "time")]
    rows = []
    shown = results
    if len(results) > _MOST_ROWS and not whole:
        shown = [result for result in results if status_of(result) is not Status.PASS][:_MOST_ROWS]
    for result in shown:
        status = status_of(result)
        row: list[Segment] = [(result.case_id, "")]
        row += [(result.model_id or "", "")] * models + [(str(result.repetition), "")] * repeated
        word = status.value if status else "not asked"
        row.append((f"{word} (quarantined)" if result.quarantined else word, STATUS_STYLE[status]))
        row += [(text, "dim" if text == UNKNOWN else "") for text in _run_figures(result)]
        rows.append(row)
    if rows:
        console.table(columns, rows)
    if len(shown) < len(results):
        console.line((f"and {amount(len(results) - len(shown), 'more run')}; -v shows all", "dim"))


def _run_figures(result: RunResult) -> list[str]:
    totals = result.totals
    calls, time = total_of(totals, "llm_calls"), duration(result.duration_ms)
    return [count(result.spans), calls, tokens_of(totals), cost_of(totals), time]


def print_scores(results: Sequence[RunResult], console: ConsoleOutput) -> None:
    """Print the scores of the runs that have any, from 0 to 10 by dimension: of the checks, then of the judges."""
    of_checks = [(result, scores) for result in results if (scores := result.scores)]
    texts = [
        f"{title_of(result)}: {', '.join(f'{dimension} {score:.1f}' for dimension, score in scores.items())}"
        for result, scores in of_checks
    ]
    _print_each(texts, "scores  ", console, indent="        ")
    judged = [result for result in results if result.judgement.get("final_score") is not None]
    _print_each([_judged(result) for result in judged], "judges  ", console, indent="        ")


def _judged(result: RunResult) -> str:
    said = result.judgement
    dimensions = said["dimensions"].items()
    listed = ", ".join(f"{name} {one['score']:.1f}" for name, one in dimensions if one["score"] is not None)
    spread = f" (spread {said['spread']:.1f} over {said['answers']} answers)" if said["answers"] > 1 else ""
    return f"{title_of(result)}: {said['final_score']:.1f} of 10{spread}; {listed}"


def print_conversations(results: Sequence[RunResult], console: ConsoleOutput, *, verbose: bool) -> None:
    """Print how each conversation with a simulated user ended, and what was said where the run is the only one or did not pass."""
    for result in results:
        said = result.conversation
        if not said:
            continue
        ended = f"`{said['end']}`" if said["end"] else "broken off"
        tokens = (said["input_tokens"], said["output_tokens"])
        took = f"{count(None if None in tokens else sum(tokens))} tokens, {dollars(said['cost_usd'])} for the user"
        text = f"{title_of(result)}: {ended} after {amount(len(said['turns']), 'turn')} ({took}). {said['why']}"
        console.line()
        console.paragraph(text, first="conversation  ", indent="  ")
        if verbose or len(results) == 1 or status_of(result) is not Status.PASS:
            for turn in said["turns"]:
                for role in ("user", "agent"):
                    if turn[role] is not None:
                        console.paragraph(cut(turn[role], _MOST_SAID), first=f"  {role:5}  ", indent="         ")


def _print_each(texts: Sequence[str], first: str, console: ConsoleOutput, *, indent: str = "  ") -> None:
    """Print paragraphs that begin alike, after an empty line; nothing where there is none."""
    if texts:
        console.line()
    for text in texts[:_MOST_LINES]:
        console.paragraph(text, first=first, indent=indent)
    if len(texts) > _MOST_LINES:
        console.paragraph(f"and {count(len(texts) - _MOST_LINES)} more", first=first, indent=indent, style="dim")


def _print_last_green(report: CampaignReport, console: ConsoleOutput) -> None:
    """Say of the cases that are not green when they last were, and what was edited since; once where several have the same to say."""
    alike: dict[str, list[str]] = {}
    for key, green in report.last_green.items():
        alike.setdefault(green.in_words, []).append(case_title(*key))
    texts = [f"{', '.join(titles[:3])}{' …' * (len(titles) > 3)}: {text}" for text, titles in alike.items()]
    _print_each(texts, "LAST GREEN  ", console)


def _print_left_out(left_out: Sequence[NotRun], console: ConsoleOutput) -> None:
    texts = []
    for run in left_out:
        quarantined = " (quarantined)" if run.quarantined else ""
        texts.append(
            f"{case_title(run.case_id, run.model_id)} · repetition {run.repetition}{quarantined}: {run.reason}"
        )
    _print_each(texts, "NOT RUN  ", console)


def _print_unjudged(report: CampaignReport, console: ConsoleOutput) -> None:
    """Say which cases ask for a judge that there is not."""
    asking = {result.case_id for result in report.results}
    found = {case_id: labels.unjudged for case_id, labels in report.labels.items() if case_id in asking}
    texts = [f"{case_id}: {' and '.join(asked)}; no judge is configured" for case_id, asked in found.items() if asked]
    _print_each(texts, "NOT JUDGED  ", console)


def _print_rerun(report: CampaignReport, console: ConsoleOutput) -> None:
    """Say how to see what decided the first verdict that did not pass, where its results and its spans are kept."""
    if report.results_file is None or report.source is None:
        return
    found = next((one for result in report.results for one in result.not_passed() if one.sql), None)
    if found is not None:
        console.line()
        named = shlex.quote(f"{_near(report.results_file)}#{found.run_id}/{found.id}")
        console.line((f"What decided: clawtrace query --verdict {named}", "dim"))


def _near(file: Path) -> str:
    """Return a path as it is written from the working folder, or as it is where it lies elsewhere."""
    near = os.path.relpath(file)
    return str(file) if near.startswith(os.pardir) else near


def print_summary(report: CampaignReport, console: ConsoleOutput) -> None:
    """Print how many runs ended how, and the exit code with its meaning."""
    words = [status_of(result) for result in report.results]
    line: list[Segment] = [(f"{count(len(words))} run{'s' if len(words) != 1 else ''}", "bold")]
    for status, word in _COUNTED.items():
        if number := words.count(status):
            line += [(": " if len(line) == 1 else ", ", ""), (f"{count(number)} {word}", STATUS_STYLE[status])]
    if report.left_out:
        line += [(": " if len(line) == 1 else ", ", ""), (f"{count(len(report.left_out))} not run", "yellow")]
    quarantined = sum(run.quarantined for run in report.results) + sum(run.quarantined for run in report.left_out)
    if quarantined:
        line.append((f"; {count(quarantined)} in quarantine, which do not count", "yellow"))
    if reused := sum(result.reused for result in report.results):
        line.append((f"; {count(reused)} reused, `--no-reuse` runs all", "dim"))
    if replayed := sum(result.cassette == "replay" for result in report.results):
        line.append((f"; {count(replayed)} with replayed models, whose cost was not spent", "dim"))
    if report.duration_ms is not None:
        line.append((f"  ({duration(report.duration_ms)})", "dim"))
    console.line(*line)
    if report.reuse:
        console.paragraph(report.reuse)
    if report.interrupted:
        console.paragraph(": interrupted; the same command runs the rest", first="exit 130", first_style="bold yellow")
        return
    code = report.exit_code
    style = {ExitCode.PASSED: "green", ExitCode.UNDECIDED: "yellow"}.get(code, "red")
    first = f"exit {int(code)}"
    console.paragraph(f": {_meaning(report)}", first=first, indent="        ", first_style=f"bold {style}")


def _meaning(report: CampaignReport) -> str:
    if report.exit_code is ExitCode.FAILED and report.gate.of_results(report.results) is not ExitCode.FAILED:
        return "the suite's pass rate is below its threshold"
    if report.exit_code is ExitCode.UNDECIDED and any(not run.quarantined for run in report.left_out):
        return "nothing failed, but some runs were not made"
    if report.exit_code is ExitCode.UNDECIDED and not any(result.verdicts for result in report.results):
        return "nothing was evaluated" + ("" if report.results else ": there was no run, as the input has no span")
    if report.exit_code is ExitCode.PASSED and any(
        standing.status is not Status.PASS for result in report.results for standing in result.standings
    ):
        return "no failure counts: what did not pass is a warning, or a flag or `min_pass_rate` lets it pass"
    return _all_passed(report.results) if report.exit_code is ExitCode.PASSED else MEANING[report.exit_code]


def _all_passed(results: Sequence[RunResult]) -> str:
    """Say how many assertions passed, and of which types, the most frequent first."""
    number = sum(len(result.verdicts) for result in results)
    said = "the only assertion passed" if number == 1 else f"all {count(number)} assertions passed"
    if not 0 < number <= _MOST_READ:
        return said
    types = Counter(verdict.type for result in results for verdict in result.verdicts).most_common()
    listed = [name if times == 1 else f"{name} ({count(times)})" for name, times in types[:_MOST_TYPES]]
    more = len(types) - len(listed)
    return f"{said}: {', '.join(listed)}" + (f" and {amount(more, 'more type')}" if more else "")

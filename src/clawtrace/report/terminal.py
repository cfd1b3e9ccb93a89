"""The report for people: a table of runs, then each thing that did not pass with its spans, then what it comes to."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Status
from clawtrace.report._verdict_text import STATUS_STYLE, print_verdicts, title_of
from clawtrace.report.base import CampaignReport, case_title, cases_of, status_of
from clawtrace.report.console import ConsoleOutput, Segment, TableColumn, cut
from clawtrace.support.figures import UNKNOWN, amount, beside, cost_of, count, duration, listed, tokens_of, total_of

if TYPE_CHECKING:
    from clawtrace.report.results import NotRun
    from clawtrace.verdicts.gating.pass_rate import PassRate

__all__ = ["MEANING", "print_campaign", "print_verdicts"]

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
        if not verbose:
            _print_hints_of_passes(report.results, console)
        _print_last_green(report, console)
        print_scores(report.results, console)
        print_conversations(report.results, console, verbose=verbose)
        retried = [f"{title_of(one)}: {'; '.join(one.retried)}" for one in report.results if one.retried]
        _print_each(retried, "RETRIED  ", console)
        _print_left_out(report.left_out, console)
        _print_unjudged(report, console)
        _print_datasets(report, console)
        _print_repetitions(report.results, console)
        _print_rerun(report, console)
        if report.page is not None:
            console.line(("Page: ", "dim"), (_near(report.page), "dim"))
        console.line()
    _print_thresholds(report, console)
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
    each = ", ".join(f"{name} {one['score']:.1f}" for name, one in dimensions if one["score"] is not None)
    spread = f" (spread {said['spread']:.1f} over {said['answers']} answers)" if said["answers"] > 1 else ""
    return f"{title_of(result)}: {said['final_score']:.1f} of 10{spread}; {each}"


def print_conversations(results: Sequence[RunResult], console: ConsoleOutput, *, verbose: bool) -> None:
    """Print how each conversation with a simulated user ended, and what was said where the run is the only one or did not pass."""
    for result in results:
        said = result.conversation
        if not said:
            continue
        ended = f"`{said['end']}`" if said["end"] else "broken off"
        tokens = (said["input_tokens"], said["output_tokens"])
        took = f"{count(None if None in tokens else sum(tokens))} tokens, {cost_of(said)} for the user"
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


def _print_hints_of_passes(results: Sequence[RunResult], console: ConsoleOutput) -> None:
    """Print the hints of verdicts that passed, each once: the name of what must never be called may be misspelt."""
    found: dict[str, dict[str, None]] = {}
    for result in results[:_MOST_ROWS]:
        for verdict in result.verdicts:
            if verdict.status is Status.PASS and verdict.hint:
                found.setdefault(verdict.hint, {})[f"{result.case_id} · {verdict.id}"] = None
    for hint, which in found.items():
        console.line()
        console.paragraph(
            f"{listed(list(which), _NAMED)} passed: {hint}", first="hint: ", indent="      ", style="cyan"
        )


def _print_last_green(report: CampaignReport, console: ConsoleOutput) -> None:
    """Print for cases that are not green when they last were, and what was edited since; once for cases with the same text."""
    alike: dict[str, list[str]] = {}
    for key, green in report.last_green.items():
        alike.setdefault(green.in_words, []).append(case_title(*key))
    texts = [f"{listed(titles, 3)}: {text}" for text, titles in alike.items()]
    _print_each(texts, "LAST GREEN  ", console)


def _print_left_out(left_out: Sequence[NotRun], console: ConsoleOutput) -> None:
    texts = []
    for run in left_out:
        title = f"{case_title(run.case_id, run.model_id)} · repetition {run.repetition}"
        texts.append(f"{title}{' (quarantined)' * run.quarantined}: {run.reason}")
    _print_each(texts, "NOT RUN  ", console)


def _print_unjudged(report: CampaignReport, console: ConsoleOutput) -> None:
    """Print the cases that need a judge that is not configured."""
    asking = {result.case_id for result in report.results}
    texts = [
        f"{case_id}: {' and '.join(labels.unjudged)}; no judge is configured"
        for case_id, labels in report.labels.items()
        if labels.unjudged and case_id in asking
    ]
    _print_each(texts, "NOT JUDGED  ", console)


def _print_rerun(report: CampaignReport, console: ConsoleOutput) -> None:
    """Print how to see the evidence of the first verdict that did not pass, if its results and spans are stored."""
    if report.results_file is None or report.source is None:
        return
    failed = (one for result in report.results for one in result.not_passed() if one.sql and not one.known_failure)
    found = next(failed, None)
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
    line: list[Segment] = [(amount(len(words), "run"), "bold")]
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
        first = f"exit {report.interrupted}"
        console.paragraph(": interrupted; `--reuse all` runs only the rest", first=first, first_style="bold yellow")
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
    """Return how many assertions passed, and of which types, the most frequent first."""
    number = sum(len(result.verdicts) for result in results)
    said = "the only assertion passed" if number == 1 else f"all {count(number)} assertions passed"
    if not 0 < number <= _MOST_READ:
        return said
    types = Counter(verdict.type for result in results for verdict in result.verdicts).most_common()
    named = [name if times == 1 else f"{name} ({count(times)})" for name, times in types[:_MOST_TYPES]]
    more = len(types) - len(named)
    return f"{said}: {', '.join(named)}" + (f" and {amount(more, 'more type')}" if more else "")


_STYLE = {"stable-pass": "green", "flaky": "yellow", "stable-fail": "red", None: "dim"}


def _rate_words(rate: PassRate, minimum: float = 1) -> str:
    """Return a pass rate with its interval, for example ``0.67 (0.21 to 0.94)``, on their side of the `minimum`."""
    if rate.rate is None or rate.interval is None:
        return UNKNOWN
    found, low, high = (beside(one, 0, minimum, 1) for one in (rate.rate, *rate.interval))
    return f"{found} ({low} to {high})"


def _print_datasets(report: CampaignReport, console: ConsoleOutput) -> None:
    """Print one line for each dataset and model: how many of its rows passed, and which did not.

    A row passed when all of its planned runs did; one that broke or was not run did not.
    """
    left_out = dict.fromkeys(map(attrgetter("case_id", "model_id"), report.left_out))
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
            text += f"; not: {listed(others, _NAMED)}"
        console.paragraph(f"{case_title(case_id, model_id)}: {text}", first="rows  ", indent="      ")


_NAMED = 10
"""Rows that are named in one line; each has its own line in the table of runs."""


def _print_repetitions(results: Sequence[RunResult], console: ConsoleOutput) -> None:
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
        row += [(_passed(rate), ""), (_rate_words(rate), ""), (_all_pass(rate), "")]
        row.append((rate.stability or "undecided", _STYLE[rate.stability]))
        rows.append(row)
        title = case_title(case_id, model_id)
        notes += [
            f"{title} · {one.id}: {one.rate.stability or 'undecided'}, {_passed(one.rate)} passed, {_rate_words(one.rate, one.minimum)}"
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


def _print_thresholds(report: CampaignReport, console: ConsoleOutput) -> None:
    """Print one line for each threshold of the suite."""
    words = {True: ("reached", "green"), False: ("BELOW", "red"), None: ("UNDECIDED", "yellow")}
    for found in report.thresholds:
        word, style = words[found.reached]
        only_shown = " (informational)" if found.informational else ""
        if found.code(report.gate) is ExitCode.PASSED and not found.reached:
            style = "yellow"
        held = ", held against the lower end" if report.gate.gate_on == "lower-bound" else ""
        console.line((f"threshold {word}", style), (f"{only_shown}: {found.sentence}{held}", ""))

"""How an evaluation ends: reports are written, the outcome is printed, and the exit code follows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from clawtrace.cli.flags import together
from clawtrace.cli.output.reports import ReportTarget, in_every_format, report_option, write_reports, writes_to_stdout
from clawtrace.errors import ClawtraceError, ExitCode
from clawtrace.verdicts.gating.gate import Gate

if TYPE_CHECKING:
    from clawtrace.model.verdict import RunResult
    from clawtrace.report.base import CampaignReport
    from clawtrace.session.session import Session
    from clawtrace.verdicts.reading.remote import HeldStore
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = ["Output", "details_of", "finish", "gate_options", "hints_of", "output_options", "trees_of"]

_MOST_TREES = 100
_MOST_BYTES = 24_000_000
"""Packed spans that a page holds at most; more would make it slow to open."""


class Output(NamedTuple):
    """Where results go, in addition to the exit code."""

    reports: Sequence[ReportTarget]
    quiet: bool
    verbose: bool

    def shows_page(self, folder: Path | None) -> bool:
        """Whether a page is written: among the reports, or in a folder of results."""
        return folder is not None or any(word == "html" for word, _ in self.reports)

    @property
    def shows_passes(self) -> bool:
        """Whether the spans of what passed are shown: in a report, or with `--verbose`."""
        return bool(self.reports or self.verbose)


output_options = together(
    "output",
    Output,
    report_option,
    click.option("-q", "--quiet", is_flag=True, help="Print the summary only."),
    click.option("-v", "--verbose", is_flag=True, help="Also show what passed, and the SQL of each verdict."),
)


gate_options = together(
    "gate",
    Gate,
    click.option(
        "--strict",
        is_flag=True,
        help="Every warning fails, every skipped or inconclusive verdict exits 3; overrides the three flags below.",
    ),
    click.option("--allow-missing-trace", is_flag=True, help="Runs without a trace (skipped) pass."),
    click.option("--allow-missing-data", is_flag=True, help="Warnings for missing data pass."),
    click.option(
        "--gate-incomplete",
        type=click.Choice(["error", "warn"]),
        default="error",
        show_default=True,
        help="warn: inconclusive verdicts pass.",
    ),
    click.option(
        "--gate-on",
        type=click.Choice(["rate", "lower-bound"]),
        default="rate",
        show_default=True,
        help="Compare the pass rate of repetitions, or the lower end of its confidence interval, with `min_pass_rate`.",
    ),
)


def trees_of(session: Session | HeldStore, results: Sequence[RunResult], *, quiet: bool) -> dict[str, list[SpanNode]]:
    """Return the span trees that failures are shown in: of the first runs with something that did not pass; none if `quiet`."""
    if quiet:
        return {}
    shown = [result.run_id for result in results if any(verdict.evidence for verdict in result.not_passed())]
    if len(shown) > _MOST_TREES:
        click.echo(
            f"note: the trees of the first {_MOST_TREES} of {len(shown)} runs are shown; `clawtrace inspect` shows any",
            err=True,
        )
    return {run_id: session.tree(run_id) for run_id in shown[:_MOST_TREES]}


def hints_of(session: Session | HeldStore, results: Sequence[RunResult], *, quiet: bool) -> list[str]:
    """Return what would make the tokens known that the table of runs shows as unknown, where no verdict says it."""
    unknown = [one for one in results if one.totals.get("llm_calls_low") and one.totals.get("input_tokens") is None]
    if quiet or not unknown:
        return []
    shown = unknown[:_MOST_TREES]
    said = {verdict.hint for result in shown for verdict in result.not_passed()}
    runs = session.inspect([result.run_id for result in shown])["runs"]
    return list(dict.fromkeys(hint for run in runs for hint in run["hints"] if not any(hint in one for one in said)))


def details_of(session: Session, results: Sequence[RunResult]) -> dict[str, bytes]:
    """Return what the page shows of the runs, packed: first of those with something that did not pass, as many as it may hold."""
    from clawtrace.report.page import packed_details

    order = sorted((result for result in results if result.spans), key=lambda result: not any(result.not_passed()))
    found: dict[str, bytes] = {}
    room = _MOST_BYTES
    for details in session.details([result.run_id for result in order]):
        found[details.run_id] = packed_details(details)
        room -= len(found[details.run_id])
        if room < 0:
            break
    return found


def finish(report: CampaignReport, output: Output, *, folder: Path | None = None, to_stderr: bool = False) -> ExitCode:
    """Write the reports, then print the outcome; return the exit code.

    Args:
        folder: where every format is written as well; None where nowhere.
        to_stderr: whether standard output is already taken.

    Raises:
        ClawtraceError: a report cannot be written; the others were, and the outcome has been printed.
    """
    from clawtrace.report.console import console_for
    from clawtrace.report.terminal import print_campaign

    ours = in_every_format(folder) if folder else []
    unwritten = write_reports(output.reports, report, ours)
    targets = [*output.reports, *ours]
    written = {word: Path(path) for word, path in reversed(targets) if path != "-" and Path(path).is_file()}
    report = report._replace(results_file=written.get("json"), page=written.get("html"))
    stream = sys.stderr if to_stderr or writes_to_stdout(output.reports) else sys.stdout
    shown = report._replace(exit_code=ExitCode.BROKEN) if unwritten else report
    print_campaign(shown, console_for(stream), verbose=output.verbose, quiet=output.quiet)
    if unwritten:
        raise ClawtraceError(" ".join(unwritten))
    return report.exit_code

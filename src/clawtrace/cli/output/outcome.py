"""The end of an evaluation: parse `--report FORMAT=PATH`, write reports, print the outcome, decide the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import click

from clawtrace.cli.flags import together
from clawtrace.errors import ClawtraceError, ExitCode
from clawtrace.report.console import console_for
from clawtrace.support.files import shared_folder, whole_text_file
from clawtrace.verdicts.gating.gate import Gate

if TYPE_CHECKING:
    from clawtrace.model.verdict import RunResult
    from clawtrace.report.base import CampaignReport
    from clawtrace.session.session import Session
    from clawtrace.verdicts.reading.remote import HeldStore
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = [
    "Output",
    "ReportTarget",
    "also_shown",
    "details_of",
    "finish",
    "gate_options",
    "output_options",
    "report_target",
    "write_reports",
]

ReportTarget = tuple[str, str]
"""Format and path; the path `-` is standard output."""


def _targets(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[ReportTarget]:
    """Read `--report` options; a mistake is reported before anything runs."""
    del ctx, param
    targets = [report_target(value) for value in values]
    places = [path if path == "-" else os.path.realpath(path) for _, path in targets]
    for place, (_, path) in zip(places, targets, strict=True):
        if places.count(place) > 1 and not Path(place).is_char_device():
            raise click.BadParameter(f"two reports cannot be one file: {path!r}.")
    return targets


def report_target(value: str) -> ReportTarget:
    """Return `FORMAT=PATH` as a target.

    Raises:
        BadParameter: it is none, or its file cannot be written.
    """
    from clawtrace.report.base import formats

    word, separator, path = value.partition("=")
    if not separator or not path:
        raise click.BadParameter(f"{value!r} is not FORMAT=PATH, for example {_example(word)}.")
    if word not in formats():
        raise click.BadParameter(f"there is no report format {word!r}; there are: {', '.join(formats())}.")
    if path != "-" and Path(path).is_dir():
        raise click.BadParameter(f"{path!r} is a folder; name a file in it.")
    parent = next(folder for folder in Path(path).absolute().parents if folder.exists())
    if path != "-" and not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise click.BadParameter(f"{path!r} cannot be written: {str(parent)!r} is not a writable folder.")
    return word, path


class _ReportOption(click.Option):
    """An option whose help names the formats that exist, found when the help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from clawtrace.report.base import formats

        self.help = f"Also write the results to a file, as {' or '.join(formats())}; `-` is stdout. Repeatable."
        return super().get_help_record(ctx)


report_option = click.option(
    "--report", "reports", metavar="FORMAT=PATH", multiple=True, callback=_targets, cls=_ReportOption
)


def _example(word: str) -> str:
    """Return an example of the flag's value, with the format that was probably meant."""
    from clawtrace.report.base import formats

    if word not in formats():
        return "json=results.json"
    return f"{word}=results.{ {'junit': 'xml', 'markdown': 'md', 'comment': 'md', 'github': 'txt'}.get(word, word) }"


def write_reports(
    targets: Sequence[ReportTarget], report: CampaignReport, private: Sequence[ReportTarget] = ()
) -> list[str]:
    """Write each report; a file appears whole or not at all. Return which could not be written, one sentence each.

    Args:
        targets: those that the user asked for.
        private: those for this user alone.
    """
    from clawtrace.cli.output.progress import working

    unwritten = []
    with working() as shown:
        files = [*(target for target in targets if target[1] != "-"), *private]
        for done, (word, path) in enumerate(files):
            shown(f"writing the report {word}", done, len(files))
            try:
                _write_file(word, report, Path(path), shared=done < len(files) - len(private))
            except OSError as error:
                unwritten.append(f"The report {path!r} cannot be written: {error.strerror}.")
    for word, path in targets:
        if path == "-":
            _write(word, report, sys.stdout)
    return unwritten


def _write_file(word: str, report: CampaignReport, path: Path, *, shared: bool) -> None:
    if shared:
        shared_folder(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.is_file() or not path.exists()  # else a pipe or a device, which keeps its place
    with whole_text_file(path, sync=False, shared=shared) if whole else path.open("w", encoding="utf-8") as stream:
        _write(word, report._replace(folder=path.parent), stream)


def _write(word: str, report: CampaignReport, stream: TextIO) -> None:
    from clawtrace.report.base import formats

    formats()[word]().write(report, stream)


def in_every_format(folder: Path) -> list[ReportTarget]:
    """Return the report of every format in a folder of results."""
    from clawtrace.report.base import formats

    return [(name, str(folder / cls.file_name)) for name, cls in formats().items() if cls.file_name]


_MOST_TREES = 100
_MOST_BYTES = 24_000_000
"""Packed spans that a page holds at most; more would make it slow to open."""


class Output(NamedTuple):
    """The targets of results, in addition to the exit code."""

    reports: Sequence[ReportTarget]
    quiet: bool
    verbose: bool

    def shows_page(self, folder: Path | None) -> bool:
        """Whether a page is written: among the reports, or in a folder of results."""
        return folder is not None or "html" in dict(self.reports)

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


def _trees_of(session: Session | HeldStore, results: Sequence[RunResult], *, quiet: bool) -> dict[str, list[SpanNode]]:
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


def _hints(session: Session | HeldStore, results: Sequence[RunResult], *, quiet: bool) -> list[str]:
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


def also_shown(
    session: Session | HeldStore, results: Sequence[RunResult], *, quiet: bool, on_a_page: Session | None = None
) -> dict[str, Any]:
    """Return what a report shows in addition to results, as its fields: `trees`, `hints`, and `details`.

    Args:
        on_a_page: who knows the details, where a page shows them.
    """
    return {
        "trees": _trees_of(session, results, quiet=quiet),
        "hints": _hints(session, results, quiet=quiet),
        "details": {} if on_a_page is None else details_of(on_a_page, results),
    }


def finish(report: CampaignReport, output: Output, *, folder: Path | None = None, to_stderr: bool = False) -> ExitCode:
    """Write the reports, then print the outcome; return the exit code.

    Args:
        folder: where every format is written as well; None where nowhere.
        to_stderr: whether standard output is already taken.

    Raises:
        ClawtraceError: a report cannot be written; the others were, and the outcome has been printed.
    """
    from clawtrace.report.terminal import print_campaign

    ours = in_every_format(folder) if folder else []
    unwritten = write_reports(output.reports, report, ours)
    targets = [*output.reports, *ours]
    written = {word: Path(path) for word, path in reversed(targets) if path != "-" and Path(path).is_file()}
    report = report._replace(results_file=written.get("json"), page=written.get("html"))
    is_taken = to_stderr or any(path == "-" for _, path in output.reports)
    stream = sys.stderr if is_taken else sys.stdout
    shown = report._replace(exit_code=ExitCode.BROKEN) if unwritten else report
    print_campaign(shown, console_for(stream), verbose=output.verbose, quiet=output.quiet)
    if unwritten:
        raise ClawtraceError(" ".join(unwritten))
    return report.exit_code

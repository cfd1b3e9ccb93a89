"""`clawtrace report`: stored results in another format, without a new run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from clawtrace.cli.output.data import stdout_console
from clawtrace.cli.output.reports import ReportTarget, report_target, write_reports
from clawtrace.errors import ClawtraceError

__all__ = ["command"]


def _targets(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[ReportTarget]:
    del ctx, param
    return [report_target(value if "=" in value else f"{value}=-") for value in values]


@click.command(
    short_help="Write stored results in another format.",
    epilog="Examples: clawtrace report smoke --to markdown; clawtrace report outputs/smoke.json --to sarif=smoke.sarif --to csv=smoke.csv",
)
@click.argument("results", metavar="[RESULTS]", required=False)
@click.option(
    "--to",
    "targets",
    metavar="FORMAT[=PATH]",
    multiple=True,
    callback=_targets,
    help="Format, and the file to write; without a path it is standard output. Repeatable. Without --to the results are printed.",
)
@click.option("-v", "--verbose", is_flag=True, help="Without --to: also show what passed, and the SQL of each verdict.")
def command(results: str | None, targets: Sequence[ReportTarget], verbose: bool) -> int:
    """Write the results of an earlier `eval` in another format, or print them again. No agent is run, nothing is judged again.

    RESULTS is a file that `--report json=FILE` wrote, a campaign's folder, or a campaign or suite below the folder of
    results; without it the newest campaign. The exit code is 0, whatever the results are.
    """
    from clawtrace.cli.sources.stored_results import stored_report
    from clawtrace.report.terminal import print_campaign

    report = stored_report(results, with_spans=any(word == "html" for word, _ in targets))
    if not targets:
        print_campaign(report, stdout_console(), verbose=verbose)
        return 0
    unwritten = write_reports(targets, report._replace(folder=Path(os.curdir)))
    if unwritten:
        raise ClawtraceError(" ".join(unwritten))
    return 0

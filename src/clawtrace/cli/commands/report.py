"""`clawtrace report`: stored results in another format, without a new run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from clawtrace.cli.output.data import stdout_console
from clawtrace.cli.output.outcome import ReportTarget, report_target, write_reports
from clawtrace.errors import ClawtraceError

__all__ = ["command"]

_LISTED = 50
"""Campaigns that `--list` reads: each has a file with all of its verdicts."""


def _targets(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[ReportTarget]:
    del ctx, param
    return [report_target(value if "=" in value else f"{value}=-") for value in values]


@click.command(
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
@click.option(
    "--compare",
    "first",
    metavar="FIRST",
    help="For `html` and `comment`: show what got worse than in FIRST: a campaign, its report.json, or a baseline.",
)
@click.option(
    "--page-url",
    default="",
    metavar="URL",
    help="For `comment` and `markdown`: where the page will be found; what did not pass is linked.",
)
@click.option("--list", "listed", is_flag=True, help="List the stored campaigns, the newest first.")
@click.option("-v", "--verbose", is_flag=True, help="Without --to: also show what passed, and the SQL of each verdict.")
def command(
    results: str | None,
    targets: Sequence[ReportTarget],
    first: str | None,
    page_url: str,
    listed: bool,
    verbose: bool,
) -> int:
    """Write the results of an earlier `eval` in another format, or print them again. No agent is run, nothing is judged again.

    RESULTS is a file that `--report json=FILE` wrote, a campaign's folder, or a campaign or suite below the folder of
    results; without it the newest campaign. The exit code is 0, whatever the results are.
    """
    from clawtrace.cli.sources.stored_results import compared, results_file, stored_report
    from clawtrace.report.terminal import print_campaign

    if listed:
        if results or targets or verbose or first or page_url:
            raise click.UsageError("--list lists the campaigns of the project; it takes nothing else.")
        _list_campaigns()
        return 0
    words = {word for word, _ in targets}
    if first and not words & {"html", "comment"}:
        raise click.UsageError("--compare is shown by `--to html=FILE` and `--to comment=FILE`: give one of them.")
    if page_url and not words & {"markdown", "comment"}:
        raise click.UsageError("--page-url is shown by `--to comment=FILE` and `--to markdown=FILE`: give one of them.")
    report = stored_report(results, with_spans="html" in words)
    if first is not None:
        report = report._replace(comparison=compared(first, results_file(results)))
    if not targets:
        print_campaign(report, stdout_console(), verbose=verbose)
        return 0
    unwritten = write_reports(targets, report._replace(folder=Path(os.curdir), page_url=page_url))
    if unwritten:
        raise ClawtraceError(" ".join(unwritten))
    return 0


def _list_campaigns() -> None:
    """Print a line for each campaign that has results, the newest first."""
    from clawtrace.cli.output.data import print_table
    from clawtrace.cli.sources.stored_results import campaign_files, read_results
    from clawtrace.errors import UsageError
    from clawtrace.report.terminal import MEANING

    rows, files = [], campaign_files()
    for file in files[:_LISTED]:
        name = file.parent.relative_to(file.parents[2]).as_posix()
        try:
            found = read_results(file)
        except UsageError as error:
            rows.append([name, "", None, None, str(error)])
            continue
        runs = found["totals"]
        rows.append([name, found["started_at"][:19], runs["runs"], runs["passed"], MEANING[found["exit_code"]]])
    print_table(["campaign", "started (UTC)", "runs", "passed", "result"], rows)
    if len(files) > _LISTED:
        click.echo(f"{len(files) - _LISTED} older ones are not listed.", err=True)

"""`clawtrace view`: stored results as a page in the browser."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path

import click

from clawtrace.cli.output.outcome import write_reports
from clawtrace.errors import ClawtraceError

__all__ = ["command"]


@click.command(
    epilog="Examples: clawtrace view; clawtrace view smoke --compare main; clawtrace view results.json --no-open",
)
@click.argument("results", metavar="[RESULTS]", required=False)
@click.option(
    "--compare",
    "first",
    metavar="FIRST",
    help="Mark what got worse or better than in FIRST, as `clawtrace compare FIRST RESULTS` says: a campaign, its report.json, "
    "or a baseline.",
)
@click.option("--no-open", is_flag=True, help="Write the page and print its path; open no browser.")
def command(results: str | None, first: str | None, no_open: bool) -> int:
    """Open the results of an earlier `eval` in the browser: cases and models, runs, spans and verdicts.

    RESULTS is a file that `--report json=FILE` wrote, a campaign's folder, or a campaign or suite below the folder of
    results; without it the newest campaign. Where `report.html` is next to the results, it is opened; else a page is made.
    """
    from clawtrace.cli.sources.stored_results import compared, results_file, stored_report

    file = results_file(results)
    page = file.with_name("report.html")
    if (
        first is not None
        or file.name != "report.json"
        or not page.is_file()
        or page.stat().st_mtime < file.stat().st_mtime
    ):
        page = Path(tempfile.mkdtemp(prefix="clawtrace-")) / f"{file.stem}.html"
        comparison = None if first is None else compared(first, file)
        report = stored_report(str(file), with_spans=True)._replace(comparison=comparison)
        if unwritten := write_reports([("html", str(page))], report):
            raise ClawtraceError(" ".join(unwritten))
    click.echo(str(page))
    if not no_open and not webbrowser.open(page.resolve().as_uri()):
        click.echo("There is no browser here: open the file above in one.", err=True)
    return 0

"""Stored results (`clawtrace.results/1`): their file, and the store or the recordings with their runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clawtrace.campaign.comparing.measured import REPORT, find_campaign, find_results
from clawtrace.cli.output.outcome import details_of
from clawtrace.cli.output.progress import working
from clawtrace.cli.sources.clickhouse import ClickHouseSource
from clawtrace.cli.sources.source import Recordings, TraceSource
from clawtrace.config.loading.assertions_file import load_assertions_file
from clawtrace.config.projects.project_file import load_project
from clawtrace.config.projects.session_settings import SessionSettings, session_settings
from clawtrace.errors import UsageError
from clawtrace.model.progress import Progress
from clawtrace.report.base import CampaignReport
from clawtrace.report.stored_report import report_of
from clawtrace.session.session import Session

if TYPE_CHECKING:
    from clawtrace.campaign.comparing.comparison import Comparison

__all__ = [
    "campaign_files",
    "compared",
    "flags_of_source",
    "opened_source",
    "read_results",
    "results_file",
    "source_of_results",
    "stored_report",
]


def read_results(path: Path) -> dict[str, Any]:
    """Return the results in a file.

    Raises:
        UsageError: they cannot be read, are none, or are those of an older version.
    """
    if path.is_dir():
        raise UsageError(
            f"{str(path)!r} is a folder: name a file of results in it, as in {str(path / 'report.json')!r}."
        )
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        known = results["schema"] == "clawtrace.results/1"
    except OSError as error:
        raise UsageError(f"the results {str(path)!r} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise UsageError(
            f"{str(path)!r} is not `clawtrace.results/1`, which `clawtrace eval --report json=FILE` writes."
        )
    if "gate" not in results or "source" not in results:
        raise UsageError(
            f"{str(path)!r} was written by an older version of clawtrace, which recorded less: run `eval` again."
        )
    return dict(results)


def results_file(value: str | None) -> Path:
    """Return the file of the results that a command names; the newest campaign's where it names none.

    Raises:
        UsageError: there is none.
    """
    outputs = load_project().outputs
    if value is not None:
        return find_results(value, outputs)
    found = next(iter(campaign_files()), None)
    if found is None:
        raise UsageError(
            f"There are no results in {str(outputs)!r} yet: `clawtrace eval --suite ID` writes them. "
            "Name a file that `--report json=FILE` wrote otherwise."
        )
    return found


def campaign_files() -> list[Path]:
    """Return the results files of the project's campaigns, the newest first."""
    files = (load_project().outputs / "campaigns").glob(f"*/*/{REPORT}")
    return sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)


def compared(first: str, second: Path) -> Comparison:
    """Return what comparing results with an earlier campaign or a baseline says."""
    from clawtrace.campaign.comparing.compare import compare
    from clawtrace.cli.output.comparison import ALPHA

    outputs = load_project().outputs
    sides = find_campaign(first, outputs), find_campaign(str(second), outputs)
    return compare(*sides, (first, os.path.relpath(second)), ALPHA)


def stored_report(value: str | None, *, with_spans: bool) -> CampaignReport:
    """Return the report of stored results.

    Args:
        value: as for `results_file`.
        with_spans: whether what only the page shows is read, too: details, from the store or the recordings of the results, and
            the history.

    Raises:
        UsageError: there are no such results.
    """
    file = results_file(value)
    results = read_results(file)
    report = report_of(results, file.parent)
    if not with_spans:
        return report
    if report.suite_id is not None and report.source is not None and report.source.store is not None:
        from clawtrace.campaign.comparing.history import history_until

        campaign = Path(os.path.normpath(report.source.store.absolute())).parent
        report = report._replace(history=history_until(campaign, report.started_at))
    run_ids = [result.run_id for result in report.results]
    try:
        with (
            working() as shown,
            opened_source(results, file.parent, TraceSource(), shown, run_ids) as session,
        ):
            return report._replace(details=details_of(session, report.results))
    except UsageError as error:
        click.echo(f"note: the page has no spans: {error}", err=True)
        return report


@contextmanager
def opened_source(
    results: Mapping[str, Any], folder: Path, source: TraceSource, shown: Progress, run_ids: Sequence[str]
) -> Iterator[Session]:
    """Open the store or the recordings that the results name, or those that are given; of a ClickHouse only the runs."""
    named = source if source.is_named else source_of_results(results, folder)
    if not named.is_named and (url := load_project().clickhouse) is not None:
        named = named._replace(store=ClickHouseSource(url))
    if not named.is_named:
        raise UsageError("the runs of these results were not kept: give them with --traces or --store.")
    if isinstance(named.store, Path) and not named.store.is_file():
        raise UsageError(
            f"the store {str(named.store)!r} of these results does not exist: give its new path with --store."
        )
    with named.held(_settings(results["source"], folder), shown, run_ids) as (session, _):
        yield session


def source_of_results(results: Mapping[str, Any], folder: Path) -> TraceSource:
    """Return the recordings or the store that results name, if they name any.

    Raises:
        UsageError: a recording does not exist.
    """
    if (origin := results["source"]) is None:
        return TraceSource()
    traces, logs, stores = (
        tuple(Path(os.path.normpath(folder / path)) for path in paths)
        for paths in (origin["traces"], origin["logs"], filter(None, (origin["store"],)))
    )
    for path in (*traces, *logs):
        if not path.exists():
            raise UsageError(
                f"the recording {str(path)!r} of these results does not exist: give its new path with --traces."
            )
    return TraceSource(Recordings(traces, origin["runs_by"], origin["one_run"], logs), next(iter(stores), None))


def flags_of_source(source: TraceSource) -> list[str]:
    """Return the flags that name recordings or a store, as a user writes them."""
    recordings, store, _ = source
    if store is not None:
        return ["--store", str(store)]
    paths = [word for path in recordings.paths for word in ("--traces", str(path))]
    paths += [word for path in recordings.logs for word in ("--log", str(path))]
    one = ["--one-run", *filter(None, (recordings.run_id,))]
    return paths + {"one": one, "file": ["--run-per-file"], "dir": ["--run-per-dir"]}.get(recordings.mode, [])


def _settings(origin: Mapping[str, Any] | None, folder: Path) -> SessionSettings:
    """Return the settings of the project, with the prices of the assertions file."""
    root = Path.cwd() if origin is None else folder / origin["project"]
    project = load_project(root if root.is_dir() else Path.cwd(), os.environ)
    asked = None if origin is None or origin["assertions"] is None else folder / origin["assertions"]
    if asked is not None and asked.is_file():
        project = load_assertions_file(str(asked), project, os.environ).project
    return session_settings(project)

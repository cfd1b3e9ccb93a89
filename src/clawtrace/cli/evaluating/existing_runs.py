"""Judge existing runs: recordings, or what a span store holds (`eval --traces`, `eval --store`)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from clawtrace.cli.output.outcome import Output, also_shown
from clawtrace.cli.sources.clickhouse import ClickHouseSource
from clawtrace.cli.sources.source import TraceSource, chosen_runs, existing_store, held_by, service_at
from clawtrace.config.loading.assertions_file import load_assertions_file, load_assertions_text
from clawtrace.config.projects.project_file import load_project
from clawtrace.config.projects.session_settings import SessionSettings, session_settings
from clawtrace.errors import UsageError
from clawtrace.report.base import AssertionLines, CampaignReport, RunsSource

if TYPE_CHECKING:
    from clawtrace.session.session import Session
    from clawtrace.verdicts.gating.gate import Gate

__all__ = ["ExistingRuns", "judge_runs", "only_suite"]


def only_suite() -> str | None:
    """Return the id of the project's suite; None where it has none, or several."""
    suites = load_project().suites
    return suites[0] if len(suites) == 1 else None


class ExistingRuns(NamedTuple):
    """The runs to judge, as the flags select them."""

    source: TraceSource
    wanted: tuple[str, ...]
    """Run ids; empty for all."""
    where: str | None
    """SQL condition over the relation `runs`; None for all."""

    def given(self) -> bool:
        """Return whether any of the flags was given."""
        return bool(self.source.is_named or self.wanted or self.where is not None)

    def located(self, *, asked: bool) -> ExistingRuns:
        """Return these runs, with the project's store where no flag names a source but something is `asked` of runs.

        Raises:
            UsageError: the project has none, or its file is not there.
        """
        if self.source.is_named or self.source.server is not None:
            return self
        project = load_project()
        if project.config.store.url is None or not (asked or self.given()):
            of_project = ", ".join(project.suites[:5]) or "here is none; `clawtrace init` writes one"
            raise click.UsageError(
                f"Give --suite to run agents ({of_project}), or --traces, --store or --server with --assertions to judge existing runs "
                "(`store: {url: …}` in clawtrace.yaml stands for --store)."
            )
        return self._replace(source=self.source._replace(store=existing_store(None, project)))

    @contextmanager
    def opened(self, settings: SessionSettings) -> Iterator[tuple[Session, list[str]]]:
        """Yield a session that holds the runs, and their ids in order.

        Raises:
            UsageError: a run that was named is not there, or no run is chosen.
            InputError: a file that was named is not OTLP.
            QueryError: the condition is no SQL that the store understands.
        """
        from clawtrace.cli.output.progress import working

        with working() as shown, self.source.held(settings, shown, self.wanted) as (session, known):
            yield session, self._chosen(session, chosen_runs(self.wanted, known, session.why_gone))

    def named_in_results(self, assertions: str, project: Path) -> RunsSource | None:
        """Return where the runs are, for the results; None where they came through a pipe or from a server."""
        recordings, store, _ = self.source
        if isinstance(store, ClickHouseSource) or not all(
            path.is_file() or path.is_dir() for path in (*recordings.paths, *recordings.logs)
        ):
            return None
        asked = Path(assertions)
        return RunsSource(
            store,
            recordings.paths,
            recordings.mode,
            recordings.run_id,
            recordings.logs,
            asked if asked.is_file() else None,
            project,
        )

    def _chosen(self, session: Session, run_ids: Sequence[str]) -> list[str]:
        if self.where is None:
            return list(run_ids)
        held = set(session.query(f"SELECT run_id FROM runs WHERE {self.where}").column("run_id"))
        chosen = [run_id for run_id in run_ids if run_id in held]
        if not chosen:
            raise click.UsageError(f"No run matches --where {self.where!r}; there are {len(run_ids)} runs.")
        return chosen


def judge_runs(
    there: ExistingRuns, assertions: str, profile: str | None, gate: Gate, output: Output, folder: Path | None
) -> CampaignReport:
    """Return the report on runs that are there.

    Args:
        assertions: path of the file that says what must be true.
        profile: id or path of the evaluation profile that says what hooks may do.
        folder: where every report is written; None where nowhere.

    Raises:
        ConfigError: every problem of the files.
        UsageError: as `ExistingRuns.opened`.
    """
    if there.source.server is not None:
        if profile is not None:
            raise click.UsageError("--evaluation-profile permits hooks, which a service does not run.")
        return _judged_by_service(there, there.source.server, assertions, gate, quiet=output.quiet)
    started, began = datetime.now(UTC), time.perf_counter()
    project = load_project()
    asked = load_assertions_file(assertions, project, os.environ, evaluation_profile=profile)
    for warning in asked.warnings:
        click.echo(f"warning: {warning}", err=True)
    with there.opened(session_settings(asked.project)) as (session, run_ids):
        judging = None
        if asked.panel is not None:
            from clawtrace.judge.judging import Judging
            from clawtrace.pricing import Pricing

            judging = Judging(asked.panel, os.environ, asked.project.pricing or Pricing(), session.put_judgements)
        results = session.evaluate(
            run_ids,
            asked.assertions.parsed,
            case_dir=asked.assertions.folder,
            hooks=asked.hooks,
            judge=None if judging is None else judging.opinions,
            evidence_of_passes=output.shows_passes or folder is not None,
        )
        if not {None, "success"}.issuperset(map(attrgetter("run_status"), results)):
            from clawtrace.session.ended_well import with_ends

            results = with_ends(session, results, asked.assertions.parsed)
        results = results if judging is None else [judging.with_assertions(one) for one in results]
        on_a_page = session if output.shows_page(folder) else None
        shown = also_shown(session, results, quiet=output.quiet, on_a_page=on_a_page)
        if note := session.keep_verdicts(results):
            click.echo(f"note: {note}", err=True)
    spent = (time.perf_counter() - began) * 1000
    lines = (
        {}
        if asked.assertions.document.path is None
        else {None: AssertionLines(asked.assertions.document.path, asked.assertions.lines)}
    )
    return CampaignReport.gated(
        None,
        started,
        results,
        gate,
        **shown,
        duration_ms=spent,
        assertion_lines=lines,
        source=there.named_in_results(assertions, asked.project.root),
    )


def _judged_by_service(there: ExistingRuns, server: str, assertions: str, gate: Gate, *, quiet: bool) -> CampaignReport:
    """Return the report on runs that a service has, and judges."""
    from clawtrace.sidecar.client import Client
    from clawtrace.verdicts.reading.result_data import result_of

    started, began = datetime.now(UTC), time.perf_counter()
    try:
        text = sys.stdin.read() if assertions == "-" else Path(assertions).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"the assertions file {assertions!r} cannot be read: {error}") from error
    load_assertions_text(text, assertions)  # what is wrong is found here, where the file is
    service = service_at(server)
    chosen = {"run_id": there.wanted} | ({} if there.where is None else {"where": there.where})
    answer = Client(service).evaluate(text, format="verdicts", **chosen)
    results = [result_of(one) for one in answer["results"]]
    shown = also_shown(held_by(service), results, quiet=quiet)
    spent = (time.perf_counter() - began) * 1000
    return CampaignReport.gated(None, started, results, gate, **shown, duration_ms=spent)

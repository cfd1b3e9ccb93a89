"""`clawtrace runs`: what runs a store holds, one of them shown, exported or deleted, and whose unnamed traces are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli.flags import together
from clawtrace.cli.output.data import json_option, print_json, print_table, stdout_console
from clawtrace.cli.sources.clickhouse import ClickHouseSource, store_options
from clawtrace.cli.sources.source import (
    Recordings,
    TraceSource,
    chosen_runs,
    existing_store,
    server_option,
    service_at,
    source_of,
)
from clawtrace.errors import InputError
from clawtrace.support.figures import amount
from clawtrace.support.files import keep_private

if TYPE_CHECKING:
    from clawtrace.sidecar.client import Client
    from clawtrace.store.duckdb import DuckStore

__all__ = ["command"]

# What was not announced and has no span (its spans were rejected) is no run to list.
_LIST = """
SELECT r.run_id, r.case_id, r.model_id, r.repetition, r.closed_by, r.complete, r.run_status,
       coalesce(s.spans, 0) AS spans, coalesce(s.traces, 0) AS traces, coalesce(s.strays > 0, false) AS unattributed,
       r.started_ns, r.ended_ns
FROM runs AS r
LEFT JOIN (
    SELECT run_id, count(*) AS spans, count(DISTINCT trace_id) AS traces,
           sum(CASE WHEN run_rule = 'none' THEN 1 ELSE 0 END) AS strays
    FROM spans GROUP BY run_id
) AS s ON s.run_id = r.run_id
WHERE s.spans > 0 OR r.closed_by IS NOT NULL OR r.case_id <> r.run_id
ORDER BY r.started_ns NULLS LAST, r.run_id
"""

_SHOWN = ("run_id", "spans", "traces", "closed_by", "complete", "run_status", "unattributed")


def _store_option(function: Callable[..., Any]) -> Callable[..., Any]:
    kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option("--store", type=kind, help="A span store (DuckDB file); by default the project's.")(function)


def _stored(store: Path | ClickHouseSource | None, server: str | None) -> TraceSource:
    return source_of(Recordings(), store, server)


_store_or_server = together(
    "source",
    _stored,
    store_options("A span store: a DuckDB file, by default the project's, or clickhouse://…."),
    server_option,
)


@click.group(epilog="Example: clawtrace runs list --store outputs/campaigns/smoke/default-0123456789ab/spans.duckdb")
def command() -> None:
    """List, show, export and delete the runs of a span store, and assign traces without a run to one."""


@command.command(
    "list", short_help="List the runs of a store.", epilog="Example: clawtrace runs list --unattributed --json"
)
@_store_or_server
@click.option(
    "--unattributed", is_flag=True, help="Only unattributed traces: those that do not belong to an announced run."
)
@json_option
def list_runs(source: TraceSource, unattributed: bool, as_json: bool) -> None:
    """List the runs of a store. A trace that named no run is listed under its trace id."""
    with source.opened() as (asked, _):
        rows = [row for row in asked.query(_LIST).dicts() if row["unattributed"] or not unattributed]
    if as_json:
        print_json(rows)
        return
    shown = [name for name in _SHOWN if name != "unattributed" or any(row[name] for row in rows)]
    print_table(shown, [[row[name] for name in shown] for row in rows])
    click.echo(amount(len(rows), "run"), err=True)


@command.command(
    "adopt",
    short_help="Assign unattributed traces to a run.",
    epilog="Example: clawtrace runs adopt my-run 4bf92f3577b34da6a3ce929d0e0e4736",
)
@click.argument("run_id")
@click.argument("trace_ids", nargs=-1, required=True)
@_store_option
@server_option
def adopt(run_id: str, trace_ids: tuple[str, ...], store: Path | None, server: str | None) -> None:
    """Give traces that named no run to the run RUN_ID; their spans then say `run_rule` = `given`.

    Only unattributed traces can be adopted (`clawtrace runs list --unattributed`): what a span said of its
    run is never overruled. Verdicts that were given before are marked stale where a campaign keeps them; `clawtrace eval`
    judges the run again.
    """
    from clawtrace.campaign.results.stored import kept_runs
    from clawtrace.campaign.results.stored_results import mark_stale
    from clawtrace.session.contents import adopt_traces
    from clawtrace.store.deleted_runs import why_gone

    wanted, stale = list(dict.fromkeys(trace_ids)), False
    if (service := _service(store, server)) is not None:
        service.adopt(run_id, wanted)
    else:
        with _held(store) as held:
            chosen_runs([run_id], held.run_ids(), partial(why_gone, held))
            adopt_traces(held, run_id, wanted)
            campaign = Path(held.path).parent
            stale = bool(mark_stale(campaign, [run for run in kept_runs(campaign) if run.run_id == run_id]))
    click.echo(f"{run_id} has adopted {amount(len(wanted), 'trace')}.", err=True)
    if stale:
        click.echo("Its verdicts are stale now: judge it again with `clawtrace eval`.", err=True)


@command.command(
    "show", short_help="Show what one run did.", epilog="Example: clawtrace runs show my-run --store spans.duckdb"
)
@click.argument("run_id")
@_store_or_server
@json_option
def show(run_id: str, source: TraceSource, as_json: bool) -> None:
    """Show the facts of one run: its spans as a tree, its totals (`clawtrace.inspect/1` in JSON)."""
    from clawtrace.cli.commands.inspect import print_run

    with source.opened([run_id]) as (asked, known):
        chosen_runs([run_id], known, asked.why_gone)
        facts, trees = asked.inspect_with_trees([run_id])
    if as_json:
        print_json(facts)
    else:
        print_run(facts["runs"][0], trees[run_id], stdout_console())


@command.command(
    "export",
    short_help="Write one run as OTLP (JSON or protobuf) or as Parquet.",
    epilog="Example: clawtrace runs export my-run --out my-run.otlp.jsonl",
)
@click.argument("run_id")
@_store_or_server
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "protobuf", "parquet"]),
    default="json",
    show_default=True,
    help="Lines of OTLP JSON; messages of OTLP protobuf, each after its length; or Parquet, for which --out is a folder.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Output file, or folder.  [default: stdout]")
def export(run_id: str, source: TraceSource, form: str, out: Path | None) -> None:
    """Write the spans and log records of RUN_ID in a form that `--traces` reads again.

    They are as they were stored: secrets stay redacted. Where a run is known by something that is not in its spans,
    `--one-run RUN_ID` makes it one run again. Parquet has the columns of the OpenTelemetry Collector's ClickHouse exporter:
    `traces.parquet`, and `logs.parquet` where there are log records.
    """
    from clawtrace.session.exporting import write_parquet_of, write_protobuf

    if form == "parquet" and out is None:
        raise click.UsageError(
            "--format parquet needs --out FOLDER: it is one file for spans, and one for log records."
        )
    with source.opened([run_id]) as (asked, known):
        chosen_runs([run_id], known, asked.why_gone)
        lines = asked.exported(run_id)
        if form == "parquet" and out is not None:
            for path in write_parquet_of(run_id, lines, out):
                click.echo(f"wrote {path}", err=True)
            return
        try:
            with click.open_file(str(out or "-"), "wb") as stream:
                if form == "protobuf":
                    write_protobuf(lines, stream)
                else:
                    stream.writelines(f"{line}\n".encode() for line in lines)
        except OSError as error:
            raise InputError(f"{str(out)!r} cannot be written: {error.strerror or error}") from error


@command.command(
    "delete",
    short_help="Delete runs from a store.",
    epilog="Example: clawtrace runs delete my-run --store spans.duckdb",
)
@click.argument("run_ids", nargs=-1, required=True)
@_store_option
@server_option
def delete(run_ids: tuple[str, ...], store: Path | None, server: str | None) -> None:
    """Take runs out of a store, with everything that it holds of them; in a campaign also what is kept next to it."""
    from clawtrace.campaign.results.stored import kept_runs
    from clawtrace.store.deleted_runs import why_gone
    from clawtrace.store.whole_runs import forget_runs

    wanted = list(dict.fromkeys(run_ids))
    if (service := _service(store, server)) is not None:
        with _stored(None, server).opened(wanted) as (asked, known):
            chosen_runs(wanted, known, asked.why_gone)
        for run_id in wanted:
            service.delete_run(run_id)
    else:
        with _held(store) as held:
            chosen_runs(wanted, held.run_ids(), partial(why_gone, held))
            for kept in kept_runs(Path(held.path).parent):
                if kept.run_id in wanted:
                    (kept.folder / "run.json").unlink(missing_ok=True)  # first: a run without its spans is never reused
            forget_runs(held, wanted, "`clawtrace runs delete`")
    click.echo(f"{amount(len(wanted), 'run')} deleted.", err=True)


def _service(store: Path | None, server: str | None) -> Client | None:
    """Return the service that was named, if one was."""
    named = _stored(store, server).server
    if named is None:
        return None
    from clawtrace.sidecar.client import Client

    return Client(service_at(named))


@contextmanager
def _held(store: Path | None) -> Iterator[DuckStore]:
    """Open a store that no other process holds."""
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.store.duckdb import DuckStore

    path = existing_store(store, load_project())
    if not isinstance(path, Path):
        raise click.UsageError(
            "runs are adopted and deleted in a DuckDB file: name it with --store. Nothing is changed in the ClickHouse of "
            "clawtrace.yaml."
        )
    keep_private()
    with closing(DuckStore(path)) as held:
        yield held

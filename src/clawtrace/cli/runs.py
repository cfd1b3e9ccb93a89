"""`clawtrace runs`: what runs a store holds, and whose the traces are that named none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli._data import json_option
from clawtrace.cli._source import Recordings, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["command"]

# What nobody announced and what has no span (its spans were rejected) is no run to list.
_LIST = """
SELECT r.run_id, r.case_id, r.model_id, r.repetition, r.closed_by, r.complete, r.run_status,
       coalesce(s.spans, 0) AS spans, coalesce(s.traces, 0) AS traces, coalesce(s.strays > 0, false) AS unattributed,
       r.started_ns, r.ended_ns
FROM runs AS r
LEFT JOIN (
    SELECT run_id, count(*) AS spans, count(DISTINCT trace_id) AS traces, count(*) FILTER (run_rule = 'none') AS strays
    FROM spans GROUP BY run_id
) AS s ON s.run_id = r.run_id
WHERE s.spans > 0 OR r.closed_by IS NOT NULL OR r.case_id <> r.run_id
ORDER BY r.started_ns NULLS LAST, r.run_id
"""

_SHOWN = ("run_id", "spans", "traces", "closed_by", "complete", "run_status", "unattributed")


def _store_option(function: Callable[..., Any]) -> Callable[..., Any]:
    kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option("--store", type=kind, help="A span store (DuckDB file); by default the project's.")(function)


@click.group(
    short_help="List stored runs, and give traces that named no run to one.",
    epilog="Example: clawtrace runs list --store outputs/campaigns/smoke/default-0123456789ab/spans.duckdb",
)
def command() -> None:
    """List the runs of a span store, and adopt traces that named none."""


@command.command("list", epilog="Example: clawtrace runs list --unattributed --json")
@_store_option
@click.option("--unattributed", is_flag=True, help="Only traces that named no run and stand for themselves.")
@json_option
def list_runs(store: Path | None, unattributed: bool, as_json: bool) -> None:
    """List the runs of a store. A trace that named no run is listed under its trace id."""
    from clawtrace.cli._data import print_json, print_table

    with Source(Recordings((), "rules"), store).opened() as (asked, _):
        rows = [row for row in asked.query(_LIST).dicts() if row["unattributed"] or not unattributed]
    if as_json:
        print_json(rows)
        return
    print_table(_SHOWN, [[row[name] for name in _SHOWN] for row in rows])
    click.echo(f"{len(rows)} run{'s' if len(rows) != 1 else ''}", err=True)


@command.command("adopt", epilog="Example: clawtrace runs adopt my-run 4bf92f3577b34da6a3ce929d0e0e4736")
@click.argument("run_id")
@click.argument("trace_ids", nargs=-1, required=True)
@_store_option
def adopt(run_id: str, trace_ids: tuple[str, ...], store: Path | None) -> None:
    """Give traces that named no run to the run RUN_ID; their spans then say `run_rule` = `given`.

    Only traces that stand for themselves can be adopted (`clawtrace runs list --unattributed`): what a span said of its
    run is never overruled. Verdicts that were given before are not changed; judge the run again.
    """
    from clawtrace.cli._source import existing_store
    from clawtrace.config.project_file import load_project
    from clawtrace.model.raw import LogBatch, SpanBatch
    from clawtrace.model.run import RunRule
    from clawtrace.store.duckdb import DuckStore

    held = DuckStore(existing_store(store, load_project(Path.cwd(), os.environ)))
    try:
        runs, traces = held.known_runs()
        _check("run", [run_id], [known for known, _ in runs])
        wanted = list(dict.fromkeys(trace_ids))
        _check("unattributed trace", wanted, [trace for trace, _, rule in traces if rule == RunRule.NONE])
        number = held.run_no(run_id)
        held.commit(SpanBatch(), LogBatch(), [], [(trace, number, RunRule.GIVEN.value) for trace in wanted])
    finally:
        held.close()
    click.echo(f"{run_id} has adopted {len(wanted)} trace{'s' if len(wanted) != 1 else ''}.", err=True)


def _check(what: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    """Refuse what the store does not hold, with the nearest that it does."""
    held = set(known)
    for name in wanted:
        if name not in held:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"The store holds {len(held)} of them."
            raise click.UsageError(f"There is no {what} {name!r}. {hint}")

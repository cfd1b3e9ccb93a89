"""`clawtrace query`: read-only SQL over the relations of recorded or stored runs."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli.output.data import json_option, print_json, print_table
from clawtrace.cli.sources.source import TraceSource, source_options
from clawtrace.errors import QueryError
from clawtrace.support.figures import amount

if TYPE_CHECKING:
    from clawtrace.facts.scopes.scopes import Scope
    from clawtrace.store.api import Answer
    from clawtrace.support.parquet_table import ColumnType

__all__ = ["command"]


@click.command(
    epilog="Examples: clawtrace query 'SELECT run_id, name, n_low FROM run_tools' --traces recordings/ --format csv; "
    "clawtrace query --verdict results.json#RUN_ID/no_loops",
)
@click.argument("sql", required=False)
@click.option(
    "--verdict",
    metavar="FILE[#ID]",
    help="Rerun verdicts of JSON results: one (RUN_ID/ASSERTION_ID), all of a case, run or assertion id, or all.",
)
@source_options
@click.option("--agent", metavar="NAME", help="Only what happened at or under an agent of this name; glob:, re:.")
@click.option("--turn", metavar="N|last", help="Only what happened in this turn, counted from 1.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    help="How to print the rows; parquet is bytes, for a file.  [default: table]",
)
@json_option
def command(
    sql: str | None,
    verdict: str | None,
    source: TraceSource,
    agent: str | None,
    turn: str | None,
    form: str | None,
    as_json: bool,
) -> int:
    """Answer one read-only SELECT over the relations of all runs that are given or stored.

    SQL that is wrong is shown with the engine's words, the relations that there are, and the columns of those it names.

    With --verdict the SQL that decided a verdict runs again, within its agent and turn, and where a function decided, that
    very function; the runs are where the results say, unless --traces or --store says otherwise. Exit codes: 0 every
    verdict is as stored; 1 one is not; 3 one cannot be rerun, such as one that looked at files.
    """
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} contradict each other.")
    form = "json" if as_json else form or "table"
    if (sql is None) == (verdict is None):
        raise click.UsageError("Give one SELECT, or --verdict; `clawtrace query --help` shows examples.")
    if verdict is not None:
        if agent or turn or form in ("csv", "parquet"):
            raise click.UsageError("--verdict has its own agent and turn, and prints text or JSON.")
        if source.server is not None:
            raise click.UsageError(
                "--verdict needs the store or the recordings themselves, not a service (--server, CLAWTRACE_SERVER)."
            )
        from clawtrace.cli.evaluating.rerun import rerun

        return rerun(verdict, source, as_json=form == "json")
    assert sql is not None
    if form == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is no text: write it into a file, as in `--format parquet > rows.parquet`.")
    _print(_answered(sql, source, _scope(agent, turn)), form)
    return 0


def _scope(agent: str | None, turn: str | None) -> Scope | None:
    """Return what the relations are narrowed down to."""
    if agent is None and turn is None:
        return None
    from clawtrace.assertions.base import Turn
    from clawtrace.assertions.matching.matchers import Matcher
    from clawtrace.facts.scopes.scopes import Scope

    counted = int(turn) if turn is not None and turn.isdigit() else turn
    named = None if agent is None else _checked("--agent", Matcher, agent)
    return Scope(named, _checked("--turn", Turn, counted))


def _checked(flag: str, kind: Any, written: Any) -> Any:
    """Return the value of a flag as an assertion would read it."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(written)
    except ValidationError as error:
        raise click.UsageError(f"{flag}: {error.errors()[0]['msg']}") from error


def _answered(sql: str, source: TraceSource, scope: Scope | None) -> Answer:
    from clawtrace.session.session import Session

    with source.opened() as (asked, _):
        if scope is not None and not isinstance(asked, Session):
            raise click.UsageError(
                "--agent and --turn need the store itself, which another process has open; try again when it has ended."
            )
        try:
            return asked.query(sql, scope=scope) if isinstance(asked, Session) else asked.query(sql)
        except QueryError as error:
            raise QueryError(f"{error}\n{_relations(f'{sql} {error}')}") from error


def _relations(said: str) -> str:
    """Return the names of the relations, with the columns of those that the question or its answer names."""
    from clawtrace.model.relations import RELATIONS

    named = set(re.findall(r"\w+", said))
    lines = [f"  {name}({', '.join(RELATIONS[name].column_names)})" for name in RELATIONS if name in named]
    return "\n".join([f"  The relations are {', '.join(RELATIONS)}.", *lines])


def _print(answer: Answer, form: str) -> None:
    if form == "json":
        print_json(answer.dicts())
    elif form == "csv":
        _print_csv(answer)
    elif form == "parquet":
        _write_parquet(answer)
    else:
        print_table(answer.columns, answer.rows)
        click.echo(amount(len(answer.rows), "row"), err=True)


def _print_csv(answer: Answer) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([_csv_cell(cell) for cell in row] for row in answer.rows)


def _csv_cell(cell: Any) -> Any:
    """Write truth values as JSON does; NULL is an empty field."""
    return {True: "true", False: "false"}[cell] if isinstance(cell, bool) else cell


def _write_parquet(answer: Answer) -> None:
    from clawtrace.support.parquet_table import write_table

    columns = {name: _typed([row[n] for row in answer.rows]) for n, name in enumerate(answer.columns)}
    write_table(columns, sys.stdout.buffer)


def _typed(cells: list[Any]) -> tuple[ColumnType, list[Any]]:
    """Return the cells of a column with the type that they have: what is neither a number nor a truth value is text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {bool}:
        return "boolean", cells
    if kinds == {int} and all(cell is None or -(1 << 63) <= cell < 1 << 63 for cell in cells):
        return "bigint", cells
    if kinds and kinds <= {int, float}:
        return "double", cells
    from clawtrace.report.json_text import json_text

    return "text", [None if cell is None else cell if isinstance(cell, str) else json_text(cell) for cell in cells]

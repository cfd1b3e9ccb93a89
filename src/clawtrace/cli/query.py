"""`clawtrace query`: read-only SQL over the relations of recorded or stored runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from clawtrace.cli._data import json_option
from clawtrace.cli._source import Source, source_options

if TYPE_CHECKING:
    from clawtrace.store.api import Answer

__all__ = ["command"]


@click.command(
    short_help="Ask recorded or stored runs in SQL.",
    epilog="Example: clawtrace query 'SELECT run_id, name, n FROM run_tools' --traces recordings/ --format csv",
)
@click.argument("sql")
@source_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    help="How to print the rows.  [default: table]",
)
@json_option
def command(sql: str, source: Source, form: str | None, as_json: bool) -> None:
    """Answer one read-only SELECT over the relations of all runs that are given or stored.

    SQL that is wrong is shown with the engine's words, the relations that there are, and the columns of those it names.
    """
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} contradict each other.")
    from clawtrace.errors import QueryError

    with source.opened() as (asked, _):
        try:
            answer = asked.query(sql)
        except QueryError as error:
            raise QueryError(f"{error}\n{_relations(f'{sql} {error}')}") from error
    _print(answer, "json" if as_json else form or "table")


def _relations(said: str) -> str:
    """Return the names of the relations, with the columns of those that the question or its answer names."""
    import re

    from clawtrace.model.relations import RELATIONS

    named = set(re.findall(r"\w+", said))
    lines = [f"  {name}({', '.join(RELATIONS[name].column_names)})" for name in RELATIONS if name in named]
    return "\n".join([f"  The relations are {', '.join(RELATIONS)}.", *lines])


def _print(answer: Answer, form: str) -> None:
    if form == "json":
        from clawtrace.cli._data import print_json

        print_json(answer.dicts())
    elif form == "csv":
        _print_csv(answer)
    else:
        from clawtrace.cli._data import print_table

        print_table(answer.columns, answer.rows)
        click.echo(f"{len(answer.rows)} row{'s' if len(answer.rows) != 1 else ''}", err=True)


def _print_csv(answer: Answer) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([_csv_cell(cell) for cell in row] for row in answer.rows)


def _csv_cell(cell: Any) -> Any:
    """Write truth values as JSON does; NULL is an empty field."""
    return {True: "true", False: "false"}[cell] if isinstance(cell, bool) else cell

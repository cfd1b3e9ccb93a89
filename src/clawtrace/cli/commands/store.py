"""`clawtrace store`: clawtrace's own tables in a ClickHouse, and what is left of a damaged store."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import click

from clawtrace.cli.sources.clickhouse import ClickHouseSource, StoreType

__all__ = ["command"]


@click.group(epilog="Example: clawtrace store salvage outputs/serve/spans.duckdb -o saved.duckdb")
def command() -> None:
    """Make clawtrace's own tables in a ClickHouse, in which `clawtrace eval` keeps facts and verdicts, or save a damaged store."""


@command.command(
    "init",
    short_help="Make the tables, or print their DDL.",
    epilog="Example: clawtrace store init --store clickhouse://writer@clickhouse:8123/otel --print > clawtrace.sql",
)
@click.option(
    "--store",
    type=StoreType(),
    metavar="URL",
    help="clickhouse://USER@HOST:8123/DATABASE[?own=NAME]; by default the project's.",
)
@click.option("--print", "prints", is_flag=True, help="Print the statements, and connect to nothing.")
def init(store: Path | ClickHouseSource | None, prints: bool) -> None:
    """Make the database `clawtrace` with the tables of facts and verdicts. What is there already is left alone.

    Without these tables runs are judged as well: questions use temporary tables of their session.
    """
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.store.clickhouse.address import ClickHouseAddress
    from clawtrace.store.clickhouse.own_tables import ddl

    if store is None:
        url = load_project().clickhouse
        store = None if url is None else ClickHouseSource(url)
    if not isinstance(store, ClickHouseSource):
        raise click.UsageError(
            "a DuckDB file needs no tables made: name a ClickHouse with --store clickhouse://…, or with `store: {url: …}` in "
            "clawtrace.yaml."
        )
    address = ClickHouseAddress.parse(store.url, os.environ)
    if prints:
        for sql in ddl(address.own):
            click.echo(f"{sql};\n")
        return
    from clawtrace.store.clickhouse.connection import ServerSession

    with closing(ServerSession(address)) as connection:
        for sql in ddl(address.own):
            connection.run(sql)
    click.echo(f"The tables of {address.own!r} are there.", err=True)


@command.command(
    "salvage",
    short_help="Write what can be read of a damaged store into a new one.",
    epilog="Example: clawtrace store salvage outputs/serve/spans.duckdb -o saved.duckdb",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The new store; it must not exist.")
def salvage(file: Path, out: Path) -> int:
    """Read a store that is damaged, its log and its journal as far as they can be read, and write a new store.

    Nothing is written to FILE; a copy of it is made in the folder of the new store for as long as this takes. Of a run that
    may have lost something no verdict counts on its being complete. Exit codes: 0 everything was read, 1 something is lost.
    """
    from clawtrace.store.salvage import salvage as salvaged

    found = salvaged(file, out)
    for table, (rows, lost) in found.rows.items():
        click.echo(f"{table}: {rows} rows" + (f", {lost} lost" if lost else ""))
    for what in found.lost:
        click.echo(f"lost: {what}")
    lacking = f", {found.incomplete} of them incomplete through the damage" if found.incomplete else ""
    click.echo(f"{str(out)!r} has {found.runs} runs{lacking}.")
    return 1 if found.lost or any(lost for _, lost in found.rows.values()) else 0

"""`clawtrace store`: clawtrace's own tables in a ClickHouse."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import click

from clawtrace.cli.sources.clickhouse import ClickHouseSource, StoreType

__all__ = ["command"]


@click.group(epilog="Example: clawtrace store init --store clickhouse://writer@clickhouse:8123/otel")
def command() -> None:
    """Make clawtrace's own tables in a ClickHouse, in which `clawtrace eval` keeps facts and verdicts."""


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

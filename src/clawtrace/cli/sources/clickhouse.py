"""`--store clickhouse://…`: runs that live in the tables of a Collector, and the flags that choose among them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from clawtrace.cli.flags import together

if TYPE_CHECKING:
    from clawtrace.config.projects.session_settings import SessionSettings
    from clawtrace.model.progress import Progress
    from clawtrace.session.clickhouse import ClickHouseSession

__all__ = ["ClickHouseSource", "StoreType", "store_options"]

_SCHEME = "clickhouse://"
_AGO = re.compile(r"(\d+)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class ClickHouseSource(NamedTuple):
    """A ClickHouse, and which of its traces."""

    url: str
    since_ns: int | None = None
    until_ns: int | None = None
    where: str | None = None
    max_spans: int | None = None

    @contextmanager
    def opened(
        self, settings: SessionSettings, shown: Progress, run_ids: Sequence[str] = ()
    ) -> Iterator[ClickHouseSession]:
        """Yield a session that holds the runs; what reading them had to say goes to standard error.

        Raises:
            UsageError: the URL is wrong, the client is not installed, or there are more spans than are allowed.
            StoreError: the server is not there, or does not let the user do it.
        """
        from clawtrace.session.clickhouse import ClickHouseSession
        from clawtrace.store.clickhouse.address import ClickHouseAddress
        from clawtrace.store.clickhouse.picking import MAX_SPANS, Selection

        selection = Selection(
            self.since_ns,
            self.until_ns,
            tuple(run_ids),
            self.where,
            MAX_SPANS if self.max_spans is None else self.max_spans,
        )
        address = ClickHouseAddress.parse(self.url, os.environ)
        with closing(ClickHouseSession.open_at(address, selection, settings=settings, progress=shown)) as session:
            for note in session.notes:
                click.echo(f"note: {note}", err=True)
            yield session


class StoreType(click.ParamType[Any]):
    """A DuckDB file, or the URL of a ClickHouse."""

    name = "store"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | ClickHouseSource:
        """Return the one or the other."""
        if isinstance(value, Path | ClickHouseSource):
            return value
        if value.startswith(_SCHEME):
            return ClickHouseSource(value)
        if "://" in value:
            self.fail(
                f"a store is a DuckDB file or {_SCHEME}USER@HOST:8123/DATABASE, not {value.split(':')[0]}://",
                param,
                ctx,
            )
        path: Path = click.Path(exists=True, dir_okay=False, path_type=Path).convert(value, param, ctx)
        return path


class _Moment(click.ParamType[Any]):
    """A time: so long ago, or a date with or without a time of day."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return nanoseconds since the Unix epoch."""
        if isinstance(value, int):
            return value
        if ago := _AGO.fullmatch(value.strip()):
            moment = datetime.now().astimezone() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            try:
                moment = datetime.fromisoformat(value).astimezone()
            except ValueError:
                self.fail(f"{value!r} is no time: write 2h, 7d, 2026-11-24 or 2026-11-24T10:00:00Z", param, ctx)
        return int(moment.timestamp() * 1_000_000) * 1_000


def _store(
    store: Path | ClickHouseSource | None,
    since: int | None,
    until: int | None,
    spans_where: str | None,
    max_spans: int | None,
) -> Path | ClickHouseSource | None:
    """Return the store that was named, with the choice among the traces of a ClickHouse.

    Raises:
        UsageError: there is a choice, and no ClickHouse.
    """
    given = {"--since": since, "--until": until, "--spans-where": spans_where, "--max-spans": max_spans}
    named = [flag for flag, value in given.items() if value is not None]
    url = store.url if isinstance(store, ClickHouseSource) else None
    if url is None and named:
        from clawtrace.config.projects.project_file import load_project

        url = None if store is not None else load_project().clickhouse
        if url is None:
            raise click.UsageError(
                f"{named[0]} chooses among the traces of a ClickHouse: --store {_SCHEME}…, or `store: {{url: …}}` in "
                "clawtrace.yaml."
            )
    return store if url is None else ClickHouseSource(url, since, until, spans_where, max_spans)


def store_options(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds `--store`, and the flags that choose among the traces of a ClickHouse; the command gets `store`."""
    return together(
        "store",
        _store,
        click.option("--store", type=StoreType(), metavar="FILE|URL", help=help_text),
        click.option(
            "--since", type=_Moment(), metavar="TIME", help="ClickHouse: traces from then on, such as 2h or a date."
        ),
        click.option("--until", type=_Moment(), metavar="TIME", help="ClickHouse: traces that began before then."),
        click.option(
            "--spans-where",
            metavar="SQL",
            help="ClickHouse: traces with a span that meets this condition, such as \"ServiceName = 'agent'\".",
        ),
        click.option(
            "--max-spans", type=click.IntRange(min=1), help="ClickHouse: most spans to read.  [default: 2000000]"
        ),
    )

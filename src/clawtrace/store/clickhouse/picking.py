"""The traces of the Collector's tables that are read: the requested ones, and all that share a run with them.

A run is judged whole or not at all. A time range picks the traces that began in it, and then come, as often as there are
any, the other traces of their runs, the traces that they link to, and those that link to them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from clawtrace.errors import StoreError, UsageError
from clawtrace.store.clickhouse.connection import ServerError, ServerSession

__all__ = ["EVERYTHING", "MAX_SPANS", "Picked", "Selection", "pick"]

MAX_SPANS = 2_000_000
"""Most spans of one evaluation, unless more are allowed."""

_IN = "IN (SELECT trace FROM picked_traces)"
_COLUMNS = {"traces": ("SpanAttributes", "Links.TraceId", "Duration"), "logs": ("LogAttributes", "Body")}


class Selection(NamedTuple):
    """The requested traces."""

    since_ns: int | None = None
    until_ns: int | None = None
    run_ids: tuple[str, ...] = ()
    """Runs by name, or traces by their ids; empty for all."""
    where: str | None = None
    """Condition in ClickHouse's SQL over the table of spans: a trace is asked for where one span meets it."""
    max_spans: int = MAX_SPANS

    @property
    def is_all(self) -> bool:
        """Whether everything was asked for."""
        return self[:4] == (None, None, (), None)


EVERYTHING = Selection()


class Picked(NamedTuple):
    """The traces that are read."""

    everything: bool
    spans: int
    has_logs: bool
    """Whether there is a table of log records."""
    traces: frozenset[str]
    """The explicitly requested ones; empty if all were."""
    runs: frozenset[str]
    """Names of runs of log records outside of traces that were asked for."""

    @property
    def of_spans(self) -> str:
        """The condition on rows of spans."""
        return "1" if self.everything else f"TraceId {_IN}"

    def of_logs(self, names: str) -> str:
        """Return the condition on rows of log records, whose runs `names` gives."""
        return (
            "1" if self.everything else f"TraceId {_IN} OR hasAny({names}, (SELECT groupArray(run) FROM picked_runs))"
        )


class _Picking:
    """The conditions, written for one server and one selection."""

    def __init__(self, connection: ServerSession, selection: Selection, keys: tuple[str, ...]) -> None:
        self.connection = connection
        self.selection = selection
        address = connection.address
        self.traces = f"`{address.database}`.`{address.traces}`"
        self.logs = f"`{address.database}`.`{address.logs}`"
        self.params: dict[str, Any] = {f"key{place}": key for place, key in enumerate(keys)}
        self.keys = [f"{{key{place}:String}}" for place in range(len(keys))]
        self.has_logs = False

    def names(self, attributes: str) -> str:
        """Return an array of all names of runs that a row states."""
        values = [f"{column}[{key}]" for key in self.keys for column in ("ResourceAttributes", attributes)]
        return f"arrayFilter(x -> x != '', [{', '.join(values)}])"

    def asked(self, names: str) -> str:
        """Return the condition on time and run of what is asked for."""
        parts = []
        since, until, run_ids, *_ = self.selection
        if since is not None:
            parts.append("Timestamp >= fromUnixTimestamp64Nano({since:Int64})")
            self.params["since"] = since
        if until is not None:
            parts.append("Timestamp < fromUnixTimestamp64Nano({until:Int64})")
            self.params["until"] = until
        if run_ids:
            parts.append(f"(TraceId IN {{runs:Array(String)}} OR hasAny({names}, {{runs:Array(String)}}))")
            self.params["runs"] = list(run_ids)
        return " AND ".join(parts) or "1"

    def run(self, sql: str) -> None:
        """Run a statement with what the conditions need."""
        self.connection.run(sql, {name: value for name, value in self.params.items() if f"{{{name}:" in sql})

    def ask(self) -> None:
        """Store the request in a temporary table."""
        spans = self.asked(self.names("SpanAttributes"))
        where = f" AND ({self.selection.where})" if self.selection.where else ""
        self.run(f"INSERT INTO picked_traces SELECT DISTINCT TraceId, 1 FROM {self.traces} WHERE {spans}{where}")
        if self.has_logs and not where:
            names = self.names("LogAttributes")
            logs = self.asked(names)
            self.run(
                f"INSERT INTO picked_traces SELECT DISTINCT TraceId, 1 FROM {self.logs} "
                f"WHERE TraceId != '' AND TraceId NOT {_IN} AND {logs}"
            )
            self.run(
                f"INSERT INTO picked_runs SELECT DISTINCT arrayJoin({names}), 1 FROM {self.logs} WHERE TraceId = '' AND {logs}"
            )

    def widen(self) -> None:
        """Add what shares a run with what is there, until nothing does."""
        spans, logs = self.names("SpanAttributes"), self.names("LogAttributes")
        new_run = "run NOT IN (SELECT run FROM picked_runs)"
        found = [f"SELECT arrayJoin({spans}) AS run FROM {self.traces} WHERE TraceId {_IN}"]
        known = "hasAny({}, (SELECT groupArray(run) FROM picked_runs))"
        shared = [
            f"SELECT TraceId AS trace FROM {self.traces} WHERE {known.format(spans)}",
            f"SELECT trace FROM (SELECT TraceId AS trace, arrayJoin(Links.TraceId) AS target FROM {self.traces} "
            f"WHERE notEmpty(Links.TraceId)) WHERE target {_IN}",
            f"SELECT arrayJoin(Links.TraceId) AS trace FROM {self.traces} WHERE TraceId {_IN}",
        ]
        if self.has_logs:
            found.append(f"SELECT arrayJoin({logs}) AS run FROM {self.logs} WHERE TraceId {_IN}")
            shared.append(f"SELECT TraceId AS trace FROM {self.logs} WHERE {known.format(logs)}")
        size = -1
        while size != (size := self.size()):
            for sql in found:
                self.run(f"INSERT INTO picked_runs SELECT DISTINCT run, 0 FROM ({sql}) WHERE {new_run}")
            for sql in shared:
                self.run(
                    f"INSERT INTO picked_traces SELECT DISTINCT trace, 0 FROM ({sql}) WHERE trace != '' AND trace NOT {_IN}"
                )

    def size(self) -> int:
        """Return how much is picked."""
        return int(
            self.connection.value("SELECT (SELECT count() FROM picked_traces) + (SELECT count() FROM picked_runs)")
        )


def pick(connection: ServerSession, selection: Selection, keys: tuple[str, ...]) -> Picked:
    """Find out what is read; two temporary tables of the session hold it from here on.

    Args:
        keys: attributes that name a run.

    Raises:
        StoreError: a table is missing or cannot be read.
        UsageError: there is nothing to read, or more than is allowed.
    """
    picking = _Picking(connection, selection, keys)
    _check(connection, connection.address.traces, "traces", must=True)
    picking.has_logs = _check(connection, connection.address.logs, "logs", must=connection.address.logs_named)
    if not selection.is_all:
        connection.make_temporary("picked_traces", "trace String, asked UInt8")
        connection.make_temporary("picked_runs", "run String, asked UInt8")
        picking.ask()
        picking.widen()
    traces = _those_asked(connection, selection, "trace", "picked_traces")
    picked = Picked(
        selection.is_all, 0, picking.has_logs, traces, _those_asked(connection, selection, "run", "picked_runs")
    )
    spans = int(connection.value(f"SELECT count() FROM {picking.traces} WHERE {picked.of_spans}"))
    if spans > selection.max_spans:
        raise UsageError(
            f"{spans:,} spans of {connection.address} would be read, more than {selection.max_spans:,}: choose fewer with "
            "--since, --until, --run-id or --spans-where, or allow more with --max-spans"
        )
    return picked._replace(spans=spans)


def _those_asked(connection: ServerSession, selection: Selection, column: str, table: str) -> frozenset[str]:
    if selection.is_all:
        return frozenset()
    return frozenset(row[0] for row in connection.rows(f"SELECT {column} FROM {table} WHERE asked = 1")[1])


def _check(connection: ServerSession, table: str, kind: str, *, must: bool) -> bool:
    """Return whether a table of the Collector is there.

    Raises:
        StoreError: it must be, and is not, or is not as the exporter makes it.
    """
    address = connection.address
    try:
        _, rows = connection.rows(f"DESCRIBE TABLE `{address.database}`.`{table}`")
    except ServerError as error:
        if not error.is_missing:
            raise
        if not must:
            return False
        raise StoreError(
            f"the database {address.database!r} of {address.host}:{address.port} has no table {table!r}: the Collector's "
            f"ClickHouse exporter creates it (`create_schema`); another name is given by ?{kind}=NAME in the URL"
        ) from error
    types = {row[0]: row[1] for row in rows}
    lacks = [name for name in _COLUMNS[kind] if name not in types]
    if lacks:
        raise StoreError(
            f"the table {table!r} of {address} has no column {lacks[0]!r}: the Collector's exporter did not make it"
        )
    if not types[_COLUMNS[kind][0]].startswith("Map("):
        raise StoreError(
            f"the column {_COLUMNS[kind][0]!r} of {table!r} is {types[_COLUMNS[kind][0]]}: only tables with Map columns can be "
            "read (`json: false` of the exporter, its default)"
        )
    return True

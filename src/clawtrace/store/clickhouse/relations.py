"""The relations of the picked runs on the server, in temporary tables of one session, asked with the texts that DuckDB is asked.

What this evaluation asks about is its own: nothing that another one writes at the same time is seen. A scope is one more session,
whose relations hold what belongs to the scope.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from clawtrace.errors import QueryError, StoreError
from clawtrace.model.query import NO_LIMITS, BoundRelation, Limits, Query, Scalar
from clawtrace.model.relations import RELATIONS, ColumnType
from clawtrace.store.api import Answer, QueryableStore
from clawtrace.store.clickhouse.address import ClickHouseAddress
from clawtrace.store.clickhouse.connection import ServerError, ServerSession
from clawtrace.store.duckdb import DuckStore
from clawtrace.store.questions.statements import replace_markers

__all__ = ["ClickHouseRelations", "columns_sql"]

_TYPES: dict[ColumnType, str] = {"text": "String", "bigint": "Int64", "double": "Float64", "boolean": "Bool"}
_PARAMETERS = {bool: "Bool", int: "Int64", float: "Float64", str: "String", type(None): "Nullable(String)"}

_OTHER_TABLES: dict[str, dict[str, ColumnType]] = {
    "fact_state": {
        "run_id": "text", "raw_rows": "bigint", "last_arrival_ns": "bigint", "record_ns": "bigint", "normaliser": "text",
        "diagnostics": "text",
    },
    "receipts": {
        "run_no": "bigint", "signal": "text", "arrival_ns": "bigint", "accepted": "bigint", "rejected": "bigint",
        "refused": "bigint", "reason": "text",
    },
    "run_numbers": {"run_no": "bigint", "run_id": "text"},
    "run_records": {"run_id": "text"},
}  # fmt: skip
"""Tables that verdicts read in addition to the relations: why a run has no trace, and the inputs of its facts."""

_NEEDED = ("join_use_nulls", "aggregate_functions_null_for_empty")
_STATE = "SELECT run_id, raw_rows, last_arrival_ns, record_ns, normaliser FROM fact_state ORDER BY run_id"
_ATTRIBUTES = re.compile(r"\battributes\b")


def columns_sql(name: str) -> str:
    """Return the columns of a relation as a table on the server has them."""
    return ", ".join(_column(column.name, column.type) for column in RELATIONS[name].columns)


def _column(name: str, kind: ColumnType) -> str:
    return f"{name} {_TYPES[kind] if name == 'run_id' else f'Nullable({_TYPES[kind]})'}"


class _Tables:
    """The temporary tables of one session.

    Args:
        connection: used for nothing else; this closes it.
    """

    def __init__(self, connection: ServerSession) -> None:
        self.connection = connection
        self._made: set[str] = set()
        self._has_attributes = False
        self._selected: list[str] | None = None
        self._bound: dict[str, tuple[tuple[str, int], ...]] = {}

    def fill(self, source: DuckStore) -> None:
        """Make every relation hold what `source` holds; `attributes` once they are needed."""
        self._has_attributes = False
        for name, relation in RELATIONS.items():
            if name != "attributes":
                self._fill(source, name, relation.column_names, columns_sql(name))
        for name, columns in _OTHER_TABLES.items():
            self._fill(source, name, tuple(columns), ", ".join(_column(*one) for one in columns.items()))

    def need_attributes(self, source: DuckStore) -> None:
        """Make `attributes` hold what `source` holds, where it does not yet: few questions read so many rows."""
        if not self._has_attributes:
            self._has_attributes = True
            self._fill(source, "attributes", RELATIONS["attributes"].column_names, columns_sql("attributes"))

    def _fill(self, source: DuckStore, name: str, names: Sequence[str], columns: str) -> None:
        self.empty(name, columns)
        source.stream(f"SELECT {', '.join(names)} FROM {name}", partial(self.connection.insert_arrow, name))

    def empty(self, name: str, columns: str) -> None:
        """Make a table without rows."""
        if name in self._made:
            self.connection.run(f"TRUNCATE TABLE {name}")
            return
        self.connection.make_temporary(name, columns)
        self._made.add(name)

    def select_runs(self, run_ids: Iterable[str]) -> None:
        """Make `selected_runs` hold exactly `run_ids`."""
        wanted = list(run_ids)
        if wanted != self._selected:
            self.empty("selected_runs", "run_id String")
            if wanted:
                self.connection.insert_rows("selected_runs", ["run_id"], ["String"], [(one,) for one in wanted])
            self._selected = wanted

    def bind(self, bound: Sequence[BoundRelation]) -> None:
        """Make the tables of bound relations."""
        for relation in bound:
            if self._bound.get(relation.name) is relation.rows:
                continue
            self.empty(relation.name, "value String, item Int64")
            if relation.rows:
                self.connection.insert_rows(relation.name, ["value", "item"], ["String", "Int64"], relation.rows)
            self._bound[relation.name] = relation.rows


class ClickHouseRelations:
    """Answers questions on the server (see `clawtrace.store.api.QueryableStore`).

    Args:
        connection: the first session; this closes it.
        source: the store in which the facts are computed.

    Raises:
        StoreError: the user may not set what makes NULL mean unknown.
    """

    def __init__(self, connection: ServerSession, source: DuckStore) -> None:
        self._check_settings(connection)
        self._source = source
        self._tables = _Tables(connection)
        self._filled_with: list[tuple[Any, ...]] | None = None
        self._may_differ = True

    @staticmethod
    def _check_settings(connection: ServerSession) -> None:
        _, rows = connection.rows(f"SELECT {', '.join(f'toString(getSetting({name!r}))' for name in _NEEDED)}")
        if any(value not in ("1", "true") for value in rows[0]):
            raise StoreError(
                f"the user {connection.address.user!r} may not change settings: set {' = 1 and '.join(_NEEDED)} = 1 in its "
                "profile, or let it have readonly = 2 instead of 1"
            )

    @property
    def address(self) -> ClickHouseAddress:
        """The address of the server."""
        return self._tables.connection.address

    @property
    def connection(self) -> ServerSession:
        """The session that holds the relations."""
        return self._tables.connection

    def facts_were_computed(self) -> None:
        """Record that the source may hold other facts."""
        self._may_differ = True

    def bring_up_to_date(self) -> None:
        """Make the relations hold what the source holds."""
        if self._may_differ:
            self._may_differ = False
            state = self._source.script(_STATE)
            if state != self._filled_with:
                self._tables.fill(self._source)
                self._filled_with = state

    @contextlib.contextmanager
    def scoped(self) -> Iterator[None]:
        """Ask, inside, what the source holds now: the relations of a scope."""
        self.bring_up_to_date()
        whole = self._tables
        self._tables = _Tables(ServerSession(whole.connection.address))
        try:
            self._tables.fill(self._source)
            yield
        finally:
            self._tables.connection.close()
            self._tables = whole

    def close(self) -> None:
        """Close the connection."""
        self._tables.connection.close()

    # Questions --------------------------------------------------------------------------------

    def sides(self) -> Sequence[QueryableStore]:
        """Return what can be asked at the same time: a session answers one question after the other."""
        return [self]

    def narrowed(self, run_ids: Sequence[str], queries: Sequence[Query]) -> contextlib.AbstractContextManager[None]:
        """Ask of everything: nothing would be gained by a copy."""
        del run_ids, queries
        return contextlib.nullcontext()

    def select_runs(self, run_ids: Iterable[str]) -> None:
        """Make ``selected_runs`` hold exactly `run_ids`."""
        self.bring_up_to_date()
        self._tables.select_runs(run_ids)

    def ask(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Answer:
        """Answer one query (see `clawtrace.store.api`)."""
        self.bring_up_to_date()
        self._tables.bind(bound)
        return self._answer(query, {})

    ask_columns = ask

    def ask_user(self, sql: str, params: Mapping[str, Scalar] | None = None, limits: Limits = NO_LIMITS) -> Answer:
        """Answer a user's own SQL, which the server keeps from changing anything (see `clawtrace.store.api`)."""
        self.bring_up_to_date()
        settings: dict[str, Any] = {"readonly": 1}
        if limits.time_limit_s is not None:
            settings["max_execution_time"] = limits.time_limit_s
        if limits.max_rows is not None:
            settings |= {"max_result_rows": limits.max_rows, "result_overflow_mode": "break"}
        answer = self._answer(Query(sql, dict(params or {})), settings)
        return Answer(answer.columns, answer.rows[: limits.max_rows])

    def _answer(self, query: Query, settings: Mapping[str, Any]) -> Answer:
        if _ATTRIBUTES.search(query.sql):
            self._tables.need_attributes(self._source)
        given = query.params
        sql = replace_markers(query.sql, lambda name: f"{{{name}:{_PARAMETERS[type(given[name])]}}}")
        try:
            return Answer(*self.connection.rows(sql, given, settings))
        except KeyError as error:
            raise QueryError(f"the parameter {error.args[0]!r} has no value") from error
        except ServerError as error:
            if error.code:
                raise QueryError(str(error)) from error
            raise

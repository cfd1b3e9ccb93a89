"""The relations on PostgreSQL and on Spark, as stores of tests: the same texts of SQL, with parameters as each engine writes them.

Neither is a store of clawtrace. They show that one for such an engine would be a thin adapter: this one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from clawtrace.errors import QueryError
from clawtrace.model.query import NO_LIMITS, BoundRelation, Limits, Query, Scalar
from clawtrace.model.relations import RELATIONS
from clawtrace.store.api import Answer
from clawtrace.store.questions.statements import replace_markers

__all__ = ["PostgresFacts", "SparkFacts"]

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


class _Facts:
    """What both have in common."""

    def sides(self) -> list[_Facts]:
        """Return what can be asked at the same time."""
        return [self]

    def narrowed(self, _run_ids: Sequence[str], _queries: Sequence[Query]) -> contextlib.AbstractContextManager[None]:
        """Ask of everything."""
        return contextlib.nullcontext()

    def ask(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Answer:
        """Answer one query."""
        raise NotImplementedError

    def ask_columns(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Answer:
        """Answer one query."""
        return self.ask(query, bound)

    def ask_user(self, sql: str, params: Mapping[str, Scalar] | None = None, limits: Limits = NO_LIMITS) -> Answer:
        """Answer a user's SQL."""
        answer = self.ask(Query(sql, params or {}))
        return Answer(answer.columns, answer.rows[: limits.max_rows])


class PostgresFacts(_Facts):
    """Temporary tables of one session of the server that CLAWTRACE_TEST_POSTGRES names."""

    types: Mapping[str, str] = {"text": "text", "bigint": "bigint", "double": "double precision", "boolean": "boolean"}

    def __init__(self) -> None:
        import psycopg

        self._db = psycopg.connect(
            os.environ["CLAWTRACE_TEST_POSTGRES"],
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,
            options="-c jit=off",
        )
        for relation in RELATIONS.values():
            columns = ", ".join(f"{column.name} {self.types[column.type]}" for column in relation.columns)
            self._db.execute(f"CREATE TEMPORARY TABLE {relation.name} ({columns})")
        self._db.execute("CREATE TEMPORARY TABLE selected_runs (run_id text)")

    def load(self, rows: Rows) -> None:
        """Make every relation hold exactly these rows."""
        self._db.execute(f"TRUNCATE {', '.join(RELATIONS)}")
        for name, of in rows.items():
            names = RELATIONS[name].column_names
            with self._db.cursor().copy(f"COPY {name} ({', '.join(names)}) FROM STDIN") as copy:
                for row in of:
                    copy.write_row([row.get(column) for column in names])

    def select_runs(self, run_ids: Iterable[str]) -> None:
        """Make `selected_runs` hold exactly `run_ids`."""
        self._db.execute("TRUNCATE selected_runs")
        self._db.execute("INSERT INTO selected_runs SELECT unnest(%s::text[])", [list(run_ids)])

    def ask(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Answer:
        """Answer one query."""
        import psycopg

        for one in bound:
            self._db.execute(f"DROP TABLE IF EXISTS {one.name}")
            self._db.execute(
                f"CREATE TEMPORARY TABLE {one.name} AS SELECT unnest(%s::text[]) AS value, unnest(%s::bigint[]) AS item",
                [[row[0] for row in one.rows], [row[1] for row in one.rows]],
            )
        try:
            written = replace_markers(query.sql.replace("%", "%%"), lambda name: f"%({name})s")
            cursor = self._db.execute(written, dict(query.params))
        except psycopg.Error as error:
            raise QueryError(str(error)) from error
        rows = [tuple(map(_number, row)) for row in cursor.fetchall()]
        return Answer(tuple(column.name for column in cursor.description or ()), rows)

    def close(self) -> None:
        """End the session."""
        self._db.close()


def _number(cell: Any) -> Any:
    """Return sums and quotients, which are exact decimals here, as other engines have them."""
    if not isinstance(cell, Decimal):
        return cell
    return int(cell) if cell == cell.to_integral_value() else float(cell)


class SparkFacts(_Facts):
    """Temporary views of a Spark that runs in this process's Java."""

    types: Mapping[str, str] = {"text": "string", "bigint": "bigint", "double": "double", "boolean": "boolean"}

    def __init__(self) -> None:
        from pyspark.sql import SparkSession

        settings = {
            "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1",
            "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.adaptive.enabled": "false", "spark.sql.session.timeZone": "UTC", "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1", "spark.ui.showConsoleProgress": "false",
            # Of the text of `tool_sequence` it makes a plan that Spark 4.3 itself refuses (PLAN_VALIDATION_FAILED_RULE_IN_BATCH).
            "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAliases",
        }  # fmt: skip
        building = SparkSession.builder.master("local[1]")
        for name, value in settings.items():
            building = building.config(name, value)
        self._spark = building.getOrCreate()
        self._spark.sparkContext.setLogLevel("OFF")
        self.load({})

    def _view(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> None:
        """Make a view of rows that are written out: they are part of the plan, and no job fetches them."""
        blank = ", ".join("NULL" for _ in columns)
        written = [f"({', '.join(map(_literal, row))})" for row in rows] or [f"({blank})"]
        cast = ", ".join(f"CAST({column} AS {kind}) AS {column}" for column, kind in columns.items())
        values = f"SELECT {cast} FROM VALUES {', '.join(written)} AS t({', '.join(columns)})"
        self._spark.sql(values if rows else f"{values} WHERE false").createOrReplaceTempView(name)

    def load(self, rows: Rows) -> None:
        """Make every relation hold exactly these rows."""
        for name, relation in RELATIONS.items():
            columns = {column.name: self.types[column.type] for column in relation.columns}
            self._view(name, columns, [[row.get(column) for column in columns] for row in rows.get(name, ())])

    def select_runs(self, run_ids: Iterable[str]) -> None:
        """Make `selected_runs` hold exactly `run_ids`."""
        self._view("selected_runs", {"run_id": "string"}, [(one,) for one in run_ids])

    def ask(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Answer:
        """Answer one query; Spark writes parameters as clawtrace does."""
        from pyspark.errors import PySparkException

        for one in bound:
            self._view(one.name, {"value": "string", "item": "bigint"}, one.rows)
        try:
            found = self._spark.sql(query.sql, args=dict(query.params))
            return Answer(tuple(found.columns), [tuple(map(_number, row)) for row in found.collect()])
        except PySparkException as error:
            raise QueryError(str(error)) from error

    def close(self) -> None:
        """End Spark."""
        self._spark.stop()


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "NULL" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)

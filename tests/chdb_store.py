"""The relations on ClickHouse's engine (chDB), as a `QueryableStore`: the second store that every assertion runs on."""

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

from clawtrace.errors import QueryError
from clawtrace.model.query import NO_LIMITS, Query
from clawtrace.model.relations import RELATIONS
from clawtrace.store.api import Answer
from clawtrace.store.questions.statements import replace_markers

TYPES = {"text": "String", "bigint": "Int64", "double": "Float64", "boolean": "Bool"}
WORKER = Path(__file__).with_name("chdb_worker.py")


READ_TOO = {
    "fact_state": "run_id String, raw_rows Int64, last_arrival_ns Int64, record_ns Int64, normaliser String, "
    "diagnostics String",
    "receipts": "run_no Int64, signal String, arrival_ns Int64, accepted Int64, rejected Int64, refused Int64, "
    "reason String",
    "run_numbers": "run_no Int64, run_id String",
    "run_records": "run_id String",
}
"""What `evaluate` reads in addition to the relations, with the columns that it names; empty unless filled."""


class ChdbStore:
    """The relations as tables; `load` replaces the rows of one.

    Args:
        engine: ClickHouse's table engine; `Memory` is quick for few rows.
    """

    def __init__(self, engine="Memory"):
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._filled = set()
        statements = [
            f"CREATE TABLE {relation.name} ({self._columns(relation)}) ENGINE = {engine}"
            for relation in RELATIONS.values()
        ]
        statements += [f"CREATE TABLE {name} ({columns}) ENGINE = Memory" for name, columns in READ_TOO.items()]
        self._run([*statements, "CREATE TABLE selected_runs (run_id String) ENGINE = Memory"])

    @staticmethod
    def _columns(relation):
        return ", ".join(
            f"{column.name} {TYPES[column.type] if column.name == 'run_id' else f'Nullable({TYPES[column.type]})'}"
            for column in relation.columns
        )

    def _send(self, command):
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise QueryError(answer["error"])
        return answer

    def _run(self, statements):
        self._send({"statements": statements})

    @staticmethod
    def _insert(table, rows):
        lines = "\n".join(json.dumps(row) for row in rows)
        return [f"INSERT INTO {table} FORMAT JSONEachRow {lines}"] if rows else []

    def load(self, rows_by_relation):
        """Make every relation hold exactly the rows given for it, as mappings; a column left out is NULL."""
        statements = [f"TRUNCATE TABLE {name}" for name in sorted(self._filled)]
        self._filled = {name for name, rows in rows_by_relation.items() if rows}
        for name, rows in rows_by_relation.items():
            statements += self._insert(name, rows)
        self._run(statements)

    def fill(self, name, parquet):
        """Take all rows of one relation from a Parquet file of its columns."""
        columns = ", ".join(RELATIONS[name].column_names)
        self._run([f"INSERT INTO {name} ({columns}) SELECT {columns} FROM file('{parquet}', Parquet)"])

    def sides(self):
        """Return what can be asked at the same time: one process answers one question after the other."""
        return [self]

    def narrowed(self, _run_ids, _queries):
        """Ask of everything: nothing is gained here by a copy."""
        return contextlib.nullcontext()

    def select_runs(self, run_ids):
        """Make `selected_runs` hold exactly `run_ids`."""
        rows = [{"run_id": run_id} for run_id in run_ids]
        self._run(["TRUNCATE TABLE selected_runs", *self._insert("selected_runs", rows)])

    def ask(self, query, bound=()):
        """Answer one query."""
        for relation in bound:
            rows = [{"value": value, "item": item} for value, item in relation.rows]
            self._run(
                [
                    f"CREATE OR REPLACE TABLE {relation.name} (value String, item Int64) ENGINE = Memory",
                    *self._insert(relation.name, rows),
                ]
            )
        sql = replace_markers(query.sql, lambda name: f"{{{name}:?}}")
        sql = re.sub(r"\{(\w+):\?\}", lambda found: f"{{{found[1]}:{_type(query.params[found[1]])}}}", sql)
        params = {name: _text(value) for name, value in query.params.items()}
        answer = self._send({"query": sql, "params": params})
        return Answer(tuple(column["name"] for column in answer["meta"]), [tuple(row) for row in answer["data"]])

    ask_columns = ask

    def ask_user(self, sql, params=None, limits=NO_LIMITS):
        """Answer a user's SQL; what keeps it from writing is the real store's and tested there."""
        answer = self.ask(Query(sql, params or {}))
        return Answer(answer.columns, answer.rows[: limits.max_rows])

    def close(self):
        """End the process."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def _type(value):
    kinds = {bool: "Bool", int: "Int64", float: "Float64", str: "String"}
    return kinds[type(value)]


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)

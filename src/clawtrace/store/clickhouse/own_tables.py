"""clawtrace's own tables on the server: facts and verdicts of evaluations, for dashboards and for questions of others.

Rows are only added. A view shows the facts of a run's latest evaluation alone: each evaluation has an id, and the row that
publishes it for a run is written after everything else. So a reader never sees half of one, nor two at once. Verdicts never
read these tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from clawtrace.model.relations import RELATIONS
from clawtrace.model.verdict import RunResult, Verdict
from clawtrace.store.clickhouse.connection import ServerSession
from clawtrace.store.clickhouse.relations import columns_sql

__all__ = ["ddl", "publish"]

_RELATIONS = tuple(name for name in RELATIONS if name != "attributes")
"""Raw attributes stay in the Collector's tables."""

_DAYS = 90

_VERDICTS = {
    "at": "DateTime64(3, 'UTC')",
    "evaluation": "String",
    "run_id": "String",
    "case_id": "String",
    "assertion_id": "String",
    "type": "LowCardinality(String)",
    "status": "LowCardinality(String)",
    "severity": "LowCardinality(String)",
    "message": "String",
    "expected": "String",
    "actual": "String",
    "missing": "String",
    "hint": "String",
    "trace_ids": "Array(String)",
    "span_ids": "Array(String)",
    "definition": "String",
}


def ddl(database: str) -> Iterator[str]:
    """Yield the statements that make the tables and views; they leave alone what is there."""
    kept = f"TTL toDateTime(at) + INTERVAL {_DAYS} DAY"
    yield f"CREATE DATABASE IF NOT EXISTS {database}"
    columns = ", ".join(f"{name} {kind}" for name, kind in _VERDICTS.items())
    yield f"CREATE TABLE IF NOT EXISTS {database}.verdicts ({columns}) ENGINE = MergeTree ORDER BY (at, run_id)"
    yield (
        f"CREATE TABLE IF NOT EXISTS {database}.published (at DateTime64(3, 'UTC'), evaluation String, run_id String) "
        f"ENGINE = MergeTree ORDER BY run_id {kept}"
    )
    latest = f"SELECT run_id, argMax(evaluation, at) FROM {database}.published GROUP BY run_id"
    for name in _RELATIONS:
        starts = "start_ns" in RELATIONS[name].column_names
        order = "(run_id, ifNull(start_ns, 0))" if starts else "run_id"
        yield (
            f"CREATE TABLE IF NOT EXISTS {database}.{name}_rows (at DateTime64(3, 'UTC'), evaluation String, "
            f"{columns_sql(name)}) ENGINE = MergeTree ORDER BY {order} {kept}"
        )
        names = ", ".join(RELATIONS[name].column_names)
        yield (
            f"CREATE VIEW IF NOT EXISTS {database}.{name} AS SELECT {names} FROM {database}.{name}_rows "
            f"WHERE (run_id, evaluation) IN ({latest})"
        )


def publish(connection: ServerSession, results: Sequence[RunResult]) -> str:
    """Write the facts that a session's tables hold, and the verdicts on them; return the id of the evaluation.

    Raises:
        ServerError: a table is missing, or the user may not write; nothing is then published.
    """
    database, evaluation, now = connection.address.own, uuid4().hex, datetime.now(UTC)
    at = now.isoformat(timespec="milliseconds").replace("+00:00", "")
    row = f"toDateTime64('{at}', 3, 'UTC'), '{evaluation}'"
    for name in _RELATIONS:
        names = ", ".join(RELATIONS[name].column_names)
        connection.run(
            f"INSERT INTO {database}.{name}_rows (at, evaluation, {names}) SELECT {row}, {names} FROM {name}"
        )
    rows = [[now, evaluation, *_verdict(result, verdict)] for result in results for verdict in result.verdicts]
    if rows:
        connection.insert_rows(f"{database}.verdicts", list(_VERDICTS), list(_VERDICTS.values()), rows)
    connection.run(f"INSERT INTO {database}.published (at, evaluation, run_id) SELECT {row}, run_id FROM runs")
    return evaluation


def _verdict(result: RunResult, verdict: Verdict) -> list[Any]:
    evidence = [one for one in verdict.evidence if one.span_id]
    own = {
        "run_id": result.run_id,
        "case_id": result.case_id,
        "assertion_id": verdict.id,
        "status": str(verdict.status),
        "trace_ids": [one.trace_id or "" for one in evidence],
        "span_ids": [one.span_id for one in evidence],
        "expected": _json(verdict.expected),
        "actual": _json(verdict.actual),
        "definition": _json(dict(verdict.definition)),
    }
    return [own[name] if name in own else getattr(verdict, name) for name in list(_VERDICTS)[2:]]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

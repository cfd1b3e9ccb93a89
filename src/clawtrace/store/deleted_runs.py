"""The record of runs deleted from a store: late spans must not create them again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from clawtrace.store.duckdb import DuckStore

__all__ = ["DeletedRun", "deleted_runs", "remember", "why_gone"]

REMEMBERED = 10_000
"""Deleted runs that are known as such; the oldest are forgotten."""
_TRACES = 100
"""Traces of each that are known."""


class DeletedRun(NamedTuple):
    """A run that was taken out."""

    run_no: int
    run_id: str
    deleted_ns: int
    why: str
    trace_ids: Sequence[str]

    def sentence(self) -> str:
        """Return what became of it."""
        when = datetime.fromtimestamp(self.deleted_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"the run {self.run_id!r} was deleted at {when} ({self.why})"


def remember(db: DuckDBPyConnection, runs: Collection[tuple[int, str]], why: str, now_ns: int) -> None:
    """Record deleted runs in the caller's transaction, before their spans are deleted; drop the oldest records.

    Args:
        runs: number and id of each.
    """
    numbers, run_ids = zip(*runs, strict=True)
    traces = (
        f'SELECT run_no, list(trace_id)[:{_TRACES}] AS trace_ids FROM (SELECT DISTINCT run_no, "TraceId" AS trace_id '
        "FROM otel_traces WHERE run_no IN (SELECT unnest($numbers))) GROUP BY run_no"
    )
    db.execute(
        f"INSERT INTO deleted_runs SELECT g.run_no, g.run_id, $now, $why, coalesce(t.trace_ids, []) FROM "
        f"(SELECT unnest($numbers) AS run_no, unnest($run_ids) AS run_id) AS g LEFT JOIN ({traces}) AS t USING (run_no)",
        {"numbers": list(numbers), "run_ids": list(run_ids), "now": now_ns, "why": why},
    )
    db.execute(
        "DELETE FROM deleted_runs WHERE run_no NOT IN "
        f"(SELECT run_no FROM deleted_runs ORDER BY deleted_ns DESC, run_no DESC LIMIT {REMEMBERED})"
    )


def deleted_runs(store: DuckStore, run_id: str | None = None) -> list[DeletedRun]:
    """Return the runs that were taken out and have not come again, the oldest first; or the one of that id."""
    found = store.script(
        "SELECT * FROM deleted_runs WHERE $id IS NULL OR run_id = $id ORDER BY deleted_ns, run_no", {"id": run_id}
    )
    there = frozenset(store.run_ids()) if found else frozenset[str]()
    return [deleted for row in found if (deleted := DeletedRun(*row)).run_id not in there]


def why_gone(store: DuckStore, run_id: str) -> str:
    """Return a sentence on a run that was deleted; empty where none of that id was, or it has come again."""
    deleted = deleted_runs(store, run_id)
    return deleted[-1].sentence() if deleted else ""

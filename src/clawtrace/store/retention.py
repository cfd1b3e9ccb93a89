"""Retention: which runs exceed the limits of a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from clawtrace.store.duckdb import DuckStore

__all__ = ["Keep", "Limit", "Surplus", "store_bytes", "surplus"]

_QUIET_NS = {"unannounced": 600 * 10**9, "unended": 86_400 * 10**9}
"""Silence, in nanoseconds, after which a run counts as over: an unannounced one, and an announced one without a stated end."""
_ROOM = 0.9
"""Part of the allowed size that is left, so that not every span makes one more run too many."""

Limit = Literal["age", "count", "size"]

# A run is over when it was closed, or when nothing came for long; `last_ns` is when the last was heard of it.
_OVER = """
SELECT n.run_id, greatest(coalesce(q.arrival_ns, 0), coalesce(r.written_ns, 0)) AS last_ns, coalesce(q.items, 0) AS items,
       CASE WHEN r.record IS NULL THEN $unannounced WHEN r.record LIKE '%"closed_by": null%' THEN $unended ELSE 0 END AS quiet_ns
FROM run_numbers AS n
LEFT JOIN (SELECT run_no, max(arrival_ns) AS arrival_ns, sum(accepted) AS items FROM receipts GROUP BY run_no) AS q
    ON q.run_no = n.run_no
LEFT JOIN run_records AS r ON r.run_id = n.run_id
WHERE n.run_id <> '' AND greatest(coalesce(q.arrival_ns, 0), coalesce(r.written_ns, 0)) > 0
ORDER BY last_ns, n.run_no
"""


class Keep(NamedTuple):
    """The limits of a store; None is no limit."""

    hours: float | None = None
    """Since anything came of a run."""
    runs: int | None = None
    size_bytes: int | None = None

    def __bool__(self) -> bool:
        """Whether anything is limited."""
        return any(limit is not None for limit in self)


class Surplus(NamedTuple):
    """A run that is too much."""

    run_id: str
    why: Limit
    last_ns: int
    """Unix time at which the last was heard of it."""


def surplus(store: DuckStore, keep: Keep, now_ns: int) -> list[Surplus]:
    """Return the runs that are too many, the oldest first; only whole runs that are over.

    Args:
        store: its lock is the caller's.
    """
    rows = store.script(_OVER, _QUIET_NS)
    over = [(run_id, last, items) for run_id, last, items, quiet in rows if not quiet or last < now_ns - quiet]
    too_old = 0 if keep.hours is None else now_ns - int(keep.hours * 3600 * 10**9)
    found = [Surplus(run_id, "age", last) for run_id, last, _ in over if last < too_old]
    left = over[len(found) :]
    if keep.runs is not None:
        many = max(0, len(rows) - len(found) - keep.runs)
        found += [Surplus(run_id, "count", last) for run_id, last, _ in left[:many]]
        left = left[many:]
    if keep.size_bytes is not None and (used := store_bytes(store)) > keep.size_bytes:
        each = used / max(1, sum(row[2] for row in rows))
        gone = {one.run_id for one in found}
        used -= int(each * sum(row[2] for row in rows if row[0] in gone))
        for run_id, last, items in left:
            if used <= keep.size_bytes * _ROOM:
                break
            found.append(Surplus(run_id, "size", last))
            used -= int(each * items)
    return found


def store_bytes(store: DuckStore) -> int:
    """Return the size of what a store holds: without what the engine uses again before the file grows."""
    ((blocks,),) = store.script("SELECT sum(used_blocks * block_size)::BIGINT FROM pragma_database_size()")
    ((rows,),) = store.script("SELECT estimated_size FROM duckdb_tables() WHERE table_name = 'otel_traces'")
    ((live,),) = store.script("SELECT count(*) FROM otel_traces")
    waiting = sum(path.stat().st_size for path in map(Path, store.files()[1:]) if path.exists())
    return int(blocks * (live / rows if rows else 1)) + waiting

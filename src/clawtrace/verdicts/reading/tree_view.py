"""The spans of one run in depth-first order, for trees on a terminal or page."""

from __future__ import annotations

from dataclasses import dataclass, fields

from clawtrace.store.api import QueryableStore
from clawtrace.verdicts.reading.rows import by_run, rows_sql

__all__ = ["SpanNode", "span_tree"]


@dataclass(frozen=True, slots=True)
class SpanNode:
    """One span as a tree shows it."""

    span_id: str
    depth: int
    """Number of received ancestors: the node's parent is the nearest node before it that is one less deep."""
    name: str
    kind: str
    duration_ms: float | None
    """None when the span never ended, or its duration is unknown."""
    ended: bool
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    error: str | None
    counted_as: str
    tool_name: str | None = None


_NODES = rows_sql("spans", [field.name for field in fields(SpanNode)], "tree_enter", duration_ms="r.duration_ns / 1e6")


def span_tree(store: QueryableStore, run_id: str) -> list[SpanNode]:
    """Return the spans of `run_id`, parents before children, siblings by start."""
    store.select_runs([run_id])
    return [SpanNode(**row) for row in by_run(store, _NODES).get(run_id, ())]

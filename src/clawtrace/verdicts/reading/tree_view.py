"""The spans of one run in depth-first order, for trees on a terminal or page."""

from __future__ import annotations

from dataclasses import dataclass

from clawtrace.model.query import Query
from clawtrace.store.api import QueryableStore

__all__ = ["SpanNode", "span_tree"]

_NODES = """
SELECT s.span_id, s.parent_span_id, s.depth, s.name, s.kind, s.dialect, s.start_ns, s.duration_ns / 1e6, s.ended,
       s.input_tokens, s.output_tokens, s.cost_usd, s.error, s.counted_as
FROM spans AS s
WHERE s.run_id = :run_id
ORDER BY s.tree_enter
"""


@dataclass(frozen=True, slots=True)
class SpanNode:
    """One span as a tree shows it."""

    span_id: str
    parent_span_id: str | None
    depth: int
    """Number of received ancestors: the node's parent is the nearest node before it that is one less deep."""
    name: str
    kind: str
    dialect: str
    start_ns: int
    duration_ms: float | None
    """None when the span never ended, or its duration is unknown."""
    ended: bool
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    error: str | None
    counted_as: str


def span_tree(store: QueryableStore, run_id: str) -> list[SpanNode]:
    """Return the spans of `run_id`, parents before children, siblings by start."""
    rows = store.ask(Query(_NODES, {"run_id": run_id})).rows
    return [SpanNode(*row) for row in rows]

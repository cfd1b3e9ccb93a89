"""Spans by type and by a part of their name: what `span_type` and `span_name` mean, wherever they are fields.

A logical model or tool call is described by several spans; each of their names is a name of the call.
"""

from __future__ import annotations

from typing import Literal

from clawtrace.model.query import Resolve

__all__ = ["SpanType", "kind_of", "named", "resolve_names"]

SpanType = Literal[
    "llm", "tool", "agent", "subagent", "chain", "retrieval", "embedding", "guardrail", "evaluator", "infra", "other"
]
"""The kinds of spans; `subagent` is the seeds' word for `agent`."""


def kind_of(span_type: SpanType) -> str:
    """Return the kind in the relation `spans` that a span type means."""
    return "agent" if span_type == "subagent" else span_type


def resolve_names(span_name: str | None) -> tuple[Resolve, ...]:
    """Return the predicate that decides once per distinct span name whether it contains `span_name`."""
    if span_name is None:
        return ()
    part = span_name
    return (Resolve("asked_span_names", "spans", "name", lambda name: (0,) if part in name else ()),)


def named(span: str, span_name: str | None) -> str:
    """Return the SQL condition that the span of alias `span`, or one that records the same call, has such a name."""
    if span_name is None:
        return "TRUE"
    return f"""({span}.name IN (SELECT m.value FROM asked_span_names AS m) OR ({span}.run_id, {span}.span_id) IN (
      SELECT w.run_id, w.counted_in FROM spans AS w
      WHERE w.counted_in IS NOT NULL AND w.name IN (SELECT k.value FROM asked_span_names AS k)))"""

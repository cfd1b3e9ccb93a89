"""Spans by type and by name: what `span_type` and `span_name` mean, wherever they are fields.

A logical model or tool call is described by several spans; each of their names is a name of the call.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.model.query import Resolve, Scalar

__all__ = ["NamedSpans", "SpanName", "SpanType"]

SpanType = Literal[
    "llm", "tool", "agent", "subagent", "chain", "retrieval", "embedding", "guardrail", "evaluator", "infra", "other"
]
"""The kinds of spans; `subagent` is the seeds' word for `agent`."""


_PATTERNS = ("glob:", "re:", "literal:")


def _checked(text: str) -> str:
    return str(Matcher.check(text)) if text.startswith(_PATTERNS) else text


SpanName = Annotated[str, Field(min_length=1), AfterValidator(_checked)]
"""A part of a name, or a matcher of the whole."""


class NamedSpans(NamedTuple):
    """The spans that `span_type` and `span_name` mean, each None where it is not given."""

    type: SpanType | None
    name: str | None

    @property
    def params(self) -> dict[str, Scalar]:
        """``kind``, the kind in the relation `spans`; nothing for every type."""
        return {} if self.type is None else {"kind": "agent" if self.type == "subagent" else self.type}

    @property
    def resolve(self) -> tuple[Resolve, ...]:
        """The predicate that decides once per distinct span name whether it is meant."""
        if self.name is None:
            return ()
        part, whole = self.name, Matcher(self.name) if self.name.startswith(_PATTERNS) else None
        return (
            Resolve(
                "asked_span_names",
                "spans",
                "name",
                lambda name: (0,) if (whole(name) if whole else part in name) else (),
            ),
        )

    def __str__(self) -> str:
        if self.name is None:
            return ""
        return f" named {self.name!r}" if self.name.startswith(_PATTERNS) else f" with {self.name!r} in its name"

    def calls(self, columns: str, *where: str) -> str:
        """Return SQL of the model calls, with the name of the span that describes each.

        Args:
            columns: more columns, SQL over the call ``c``.
            where: further conditions, SQL over ``c``.
        """
        return f"""(
      SELECT c.run_id AS run_id, c.call_no AS call_no, c.span_id AS span_id, coalesce(p.name, 'model call') AS name,
             c.certain AS certain, {columns}
      FROM llm_calls AS c
      LEFT JOIN spans AS p ON p.run_id = c.run_id AND p.span_id = c.span_id
      WHERE {" AND ".join([*where, self.named("p")])}
    )"""

    def named(self, span: str) -> str:
        """Return the SQL condition that the span of alias `span`, or one that records the same call, has such a name."""
        if self.name is None:
            return "TRUE"
        return f"""({span}.name IN (SELECT m.value FROM asked_span_names AS m) OR ({span}.run_id, {span}.span_id) IN (
      SELECT w.run_id, w.counted_in FROM spans AS w
      WHERE w.counted_in IS NOT NULL AND w.name IN (SELECT k.value FROM asked_span_names AS k)))"""

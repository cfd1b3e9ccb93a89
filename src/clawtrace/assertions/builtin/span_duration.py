"""`span_duration`: how long spans of one kind took."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.bounds import Amount, milliseconds
from clawtrace.assertions.forms.calls import ANSWERED
from clawtrace.assertions.forms.count import Share, share
from clawtrace.assertions.forms.sources import Source
from clawtrace.assertions.forms.where import Where
from clawtrace.assertions.refused import refused
from clawtrace.assertions.spans.named_spans import NamedSpans, SpanName, SpanType

__all__ = ["SpanDuration"]

_TO_FIRST_TOKEN = """c.outcome AS outcome,
             CASE WHEN c.first_token_ns >= c.start_ns THEN c.first_token_ns - c.start_ns END AS length_ns"""


class SpanDuration(Assertion):
    """The given quantile of the durations of the spans, or of the times to their first token, is at most `max_ms`.

    A run can be fast on the whole and slow where a user waits. The quantile is a value that occurred: of n spans at
    least quantile × n took no longer. Every span of the type counts; infrastructure spans only on request, spans
    that only account for a call never. A span that never ended, or whose first token was not recorded, may have taken
    any time; a run without any such span leaves the question open.

    Example:
        - type: span_duration
          span_type: tool
          max_ms: 2000
          quantile: 0.95
    """

    main_field = "max_ms"
    requires = ("spans.duration_ns", "spans.kind", "spans.name")

    max_ms: Amount
    """Longest duration, in milliseconds."""
    span_type: SpanType | None = None
    """The kind of the spans, `subagent` being `agent`; by default all of the agent's work (not infra)."""
    span_name: SpanName | None = None
    """Text that the span's name contains, case-sensitively, or `glob:`, `re:`, `literal:` for the whole name; by default every name."""
    quantile: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0
    """The share of the spans that must be within the limit, above 0; 1 means every one."""
    first_token: bool = False
    """Measure model calls up to their first token."""

    @model_validator(mode="after")
    def _check(self) -> SpanDuration:
        if self.first_token and self.span_type not in (None, "llm"):
            raise refused(
                "only model calls have a first token: `first_token` goes with `span_type: llm`", "first_token"
            )
        return self

    def _lengths(self) -> Source:
        """One row a span: how long it took in nanoseconds, NULL where that is unknown."""
        if self.first_token:
            rows = self._spans.calls(_TO_FIRST_TOKEN, "(c.outcome IS NULL OR c.outcome = 'ok')")
            return Source(rows, "CASE WHEN r.certain AND r.outcome = 'ok' THEN 1 ELSE 0 END", relation="llm_calls")
        kind = "p.kind <> 'infra'" if self.span_type is None else "p.kind = :kind"
        rows = f"""(
      SELECT p.run_id AS run_id, p.tree_enter AS tree_enter, p.span_id AS span_id, p.name AS name, TRUE AS certain,
             p.duration_ns AS length_ns
      FROM spans AS p
      WHERE {kind} AND {self._spans.named("p")} AND NOT (p.kind IN ('llm', 'tool') AND coalesce(p.counted_as, 'none') = 'accounting')
    )"""
        return Source(rows, number="tree_enter", relation="spans")

    def question(self) -> Share:
        """Compare the share of the spans within the limit."""
        within = Where(
            "r.length_ns <= :max_ns",
            ANSWERED.gap if self.first_token else "TRUE",
            ("first_token_ns", "start_ns", "outcome"),
            self._spans.resolve,
            {"max_ns": round(self.max_ms * 1_000_000)} | ({} if self.first_token else self._spans.params),
        )
        limit = milliseconds(self.max_ms)
        return share(
            self._lengths(),
            within,
            self.quantile,
            noun=self._noun,
            of=f"{self._spans} {f'had their first token within {limit}' if self.first_token else f'took at most {limit}'}",
            shown="r.name || ': ' || CASE WHEN r.length_ns IS NULL THEN 'unknown' ELSE '' || (r.length_ns / 1000000.0) || ' ms' END",
            order="-coalesce(r.length_ns, 0)",
            greatest={"largest": "r.length_ns"},
        )

    @property
    def _noun(self) -> str:
        return "model call" if self.first_token else f"{self.span_type} span" if self.span_type else "span"

    @property
    def _spans(self) -> NamedSpans:
        return NamedSpans(self.span_type, self.span_name)

    def actual(self, outcome: Outcome) -> Any:
        """Return how many spans are within the limit and how many are not, as intervals, and the longest in milliseconds."""
        found = self.form.actual(outcome.row)
        longest = found.pop("largest")
        return found | {"longest_ms": None if longest is None else longest / 1e6}

    def explain(self, outcome: Outcome) -> str:
        """Return how many spans were within the limit."""
        row = outcome.row
        if not row["seen"]:
            return f"There is no {self._noun}{self._spans} for sure, so its duration is unknown."
        slowest = "" if row["largest"] is None else f", the slowest {milliseconds(row['largest'] / 1e6, self.max_ms)}"
        return f"{self.form.sentence(outcome).removesuffix('.')}{slowest}."

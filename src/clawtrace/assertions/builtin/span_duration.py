"""`span_duration`: how long spans of one kind took."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from clawtrace.assertions.base import Assertion, Growth, Outcome
from clawtrace.assertions.counting.bounds import Amount, milliseconds, plural
from clawtrace.assertions.refused import refused
from clawtrace.assertions.spans.named_spans import SpanType, kind_of, named, resolve_names
from clawtrace.model.query import Query, Resolve, Scalar

__all__ = ["SpanDuration"]

# quantile × number of spans in binary floating point may be off by its last bits.
_ROUNDING = "1e-9"


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

    growth = "shrinking"
    main_field = "max_ms"
    requires = ("spans.duration_ns", "spans.kind", "spans.name")

    max_ms: Amount
    """Longest duration, in milliseconds."""
    span_type: SpanType | None = None
    """Which spans: a kind of span, `subagent` being `agent`; by default all of the agent's work (not infra)."""
    span_name: Annotated[str, Field(min_length=1)] | None = None
    """Text that the span's name contains, case-sensitively; by default every name."""
    quantile: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0
    """Which share of the spans must be within the limit, above 0; 1 means every one."""
    first_token: bool = False
    """Measure model calls up to their first token."""

    @model_validator(mode="after")
    def _check(self) -> SpanDuration:
        if self.first_token and self.span_type not in (None, "llm"):
            raise refused(
                "only model calls have a first token: `first_token` goes with `span_type: llm`", "first_token"
            )
        return self

    def growth_of(self) -> Growth:
        """More spans can bring a quantile below 1 to either side, and a logical call its own first token."""
        return "shrinking" if self.quantile == 1 and not self.first_token else "exact"

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct span name."""
        return resolve_names(self.span_name)

    def _lengths(self) -> str:
        """SQL of one row a span: how long it took in nanoseconds, NULL where that is unknown."""
        name = named("p", self.span_name)
        if self.first_token:
            return f"""
    SELECT c.run_id AS run_id, c.span_id AS span_id, coalesce(p.name, 'model call') AS name, c.start_ns AS start_ns,
           CASE WHEN c.first_token_ns >= c.start_ns THEN c.first_token_ns - c.start_ns END AS length_ns
    FROM llm_calls AS c
    JOIN selected_runs AS q ON q.run_id = c.run_id
    LEFT JOIN spans AS p ON p.run_id = c.run_id AND p.span_id = c.span_id
    WHERE c.outcome = 'ok' AND {name}"""
        kind = "p.kind <> 'infra'" if self.span_type is None else "p.kind = :kind"
        return f"""
    SELECT p.run_id AS run_id, p.span_id AS span_id, p.name AS name, p.start_ns AS start_ns,
           p.duration_ns AS length_ns
    FROM spans AS p
    JOIN selected_runs AS q ON q.run_id = p.run_id
    WHERE {kind} AND {name}
      AND NOT (p.kind IN ('llm', 'tool') AND coalesce(p.counted_as, 'none') = 'accounting')"""

    @property
    def _kind(self) -> dict[str, Scalar]:
        return {} if self.span_type is None or self.first_token else {"kind": kind_of(self.span_type)}

    def query(self) -> Query:
        """Count the spans within the limit for sure, and those that may be."""
        enough = f":quantile * g.spans - {_ROUNDING}"
        nothing = "llm_calls" if self.first_token else "spans"
        unknown = "llm_calls.first_token_ns" if self.first_token else "spans.end_ns"
        return Query(
            f"""
SELECT g.run_id AS run_id, g.spans AS spans, g.within AS within, g.unknown AS unknown, g.longest_ns AS longest_ns,
       FALSE AS final,
       CASE WHEN g.spans = 0 THEN NULL WHEN g.within >= {enough} THEN TRUE
            WHEN g.within + g.unknown < {enough} THEN FALSE ELSE NULL END AS holds,
       CASE WHEN g.spans = 0 THEN '{nothing}' WHEN g.unknown > 0 THEN '{unknown}' ELSE NULL END AS missing
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, count(CASE WHEN f.has_trace = 0 THEN 1 END) AS spans,
         count(CASE WHEN f.length_ns <= :max_ns THEN 1 END) AS within,
         count(CASE WHEN f.has_trace = 0 AND f.length_ns IS NULL THEN 1 END) AS unknown,
         max(f.length_ns) AS longest_ns
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, NULL AS length_ns
    FROM run_totals AS t
    JOIN selected_runs AS s ON s.run_id = t.run_id
    UNION ALL
    SELECT h.run_id AS run_id, 0 AS has_trace, h.length_ns AS length_ns
    FROM ({self._lengths()}
    ) AS h
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""",
            {"max_ns": round(self.max_ms * 1_000_000), "quantile": float(self.quantile), **self._kind},
        )

    def evidence(self) -> Query:
        """Return the slowest spans, and those whose duration is unknown."""
        return Query(
            f"""
SELECT h.run_id AS run_id, h.span_id AS span_id,
       h.name || ': ' || CASE WHEN h.length_ns IS NULL THEN 'unknown' ELSE '' || (h.length_ns / 1000000.0) || ' ms' END
         AS why,
       row_number() OVER (
         PARTITION BY h.run_id, CASE WHEN h.length_ns IS NULL THEN 1 ELSE 0 END
         ORDER BY coalesce(h.length_ns, 0) DESC, h.start_ns, h.span_id) AS rank
FROM ({self._lengths()}
) AS h
""",
            self._kind,
        )

    def actual(self, outcome: Outcome) -> Any:
        """Return how many spans there are, how many within the limit or unknown, and the longest in milliseconds."""
        row = outcome.row
        longest = None if row["longest_ns"] is None else row["longest_ns"] / 1e6
        return {"spans": row["spans"], "within": row["within"], "unknown": row["unknown"], "longest_ms": longest}

    def explain(self, outcome: Outcome) -> str:
        """Say how many spans were within the limit."""
        row = outcome.row
        kind = "model call" if self.first_token else f"{self.span_type} span" if self.span_type else "span"
        name = f" with {self.span_name!r} in its name" if self.span_name else ""
        if not row["spans"]:
            return f"There is no {kind}{name}, so its duration is unknown."
        what = "had their first token" if self.first_token else "took at most"
        limit = f"{'within ' if self.first_token else ''}{milliseconds(self.max_ms)}"
        asked = "all of them" if self.quantile == 1 else f"a share of {self.quantile:g}"
        unknown = f", {row['unknown']} unknown" if row["unknown"] else ""
        slowest = "" if row["longest_ns"] is None else f", the slowest {milliseconds(row['longest_ns'] / 1e6)}"
        return (
            f"{row['within']} of {plural(row['spans'], kind)}{name} {what} {limit}{unknown}, expected {asked}{slowest}."
        )

"""`per_span_budget`: how many tokens one span used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.counting.apart import still_open
from clawtrace.assertions.counting.bounds import Count, plural
from clawtrace.assertions.spans.named_spans import SpanType, kind_of, named, resolve_names
from clawtrace.model.query import Query, Resolve

__all__ = ["PerSpanBudget"]

_SHOWN = 10
"""Spans that the sentence names; `actual` has all of them."""

# The tokens of one model call: a failed call without usage used none, an answered one an unknown number.
_CALL_LOW = "coalesce(c.input_tokens, 0) + coalesce(c.output_tokens, 0)"
_CALL_HIGH = f"CASE WHEN c.outcome <> 'error' THEN c.input_tokens + c.output_tokens ELSE {_CALL_LOW} END"


class PerSpanBudget(Assertion):
    """No span of the type, with `span_name` in its name, used more than `max_tokens` tokens.

    One overlong prompt hides in a total. A model call counts input and output once, however many spans report it; any
    other span counts the usage recorded on it or the calls under it, whichever is more. Every span over the budget is
    listed. A span whose tokens are unknown leaves the question open, and so do a run without any such span and model
    calls that were made and are not recorded. Another span may know the tokens of a call better: over the budget is
    final once the run is closed.

    Example:
        - type: per_span_budget
          max_tokens: 4000
          span_name: summarize
    """

    growth = "exact"
    main_field = "max_tokens"
    requires = ("llm_calls.input_tokens", "llm_calls.output_tokens", "spans.name", "spans.kind")

    max_tokens: Count
    """Most tokens of one span, input and output together."""
    span_type: SpanType = "llm"
    """Which spans: a kind of span; `subagent` is `agent`."""
    span_name: Annotated[str, Field(min_length=1)] | None = None
    """Text that the span's name contains, case-sensitively; by default every name."""

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct span name."""
        return resolve_names(self.span_name)

    def _spans(self) -> str:
        """SQL of one row a span: its tokens as an interval, ``high`` being NULL where they are unknown."""
        return self._calls() if self.span_type == "llm" else self._others()

    def _calls(self) -> str:
        return f"""
    SELECT c.run_id AS run_id, c.span_id AS span_id, coalesce(p.name, 'model call') AS name, c.start_ns AS start_ns,
           {_CALL_LOW} AS low, {_CALL_HIGH} AS high
    FROM llm_calls AS c
    JOIN selected_runs AS q ON q.run_id = c.run_id
    LEFT JOIN (
      SELECT z.run_id AS run_id, z.span_id AS span_id, z.name AS name
      FROM spans AS z
      JOIN selected_runs AS y ON y.run_id = z.run_id
    ) AS p ON p.run_id = c.run_id AND p.span_id = c.span_id
    WHERE {named("p", self.span_name)}"""

    def _amounts(self) -> str:
        """SQL of the same rows without names, where no name is expected: then no span is read."""
        if self.span_type != "llm" or self.span_name is not None:
            return self._spans()
        return f"""
    SELECT c.run_id AS run_id, {_CALL_LOW} AS low, {_CALL_HIGH} AS high
    FROM llm_calls AS c
    JOIN selected_runs AS q ON q.run_id = c.run_id"""

    def _others(self) -> str:
        """The usage recorded on a span, or the sum of the calls under it; the larger where both are known."""
        return f"""
    SELECT e.run_id AS run_id, e.span_id AS span_id, e.name AS name, e.start_ns AS start_ns,
           CASE WHEN e.own_low > e.under_low THEN e.own_low ELSE e.under_low END AS low,
           CASE WHEN e.own IS NULL THEN e.under WHEN e.under > e.own THEN e.under ELSE e.own END AS high
    FROM (
      SELECT p.run_id AS run_id, p.span_id AS span_id, p.name AS name, p.start_ns AS start_ns,
             coalesce(p.input_tokens, 0) + coalesce(p.output_tokens, 0) AS own_low,
             p.input_tokens + p.output_tokens AS own, coalesce(u.low, 0) AS under_low,
             CASE WHEN t.llm_calls IS NULL THEN NULL WHEN u.calls > 0 THEN u.high
                  WHEN t.llm_calls > 0 OR t.failed_llm_attempts > 0 THEN 0 ELSE NULL END AS under
      FROM spans AS p
      JOIN selected_runs AS q ON q.run_id = p.run_id
      JOIN run_totals AS t ON t.run_id = p.run_id
      LEFT JOIN (
        SELECT o.run_id AS run_id, o.span_id AS span_id, count(*) AS calls, CAST(sum(c.low) AS bigint) AS low,
               CASE WHEN count(c.high) = count(*) THEN CAST(sum(c.high) AS bigint) ELSE NULL END AS high
        FROM spans AS o
        JOIN selected_runs AS x ON x.run_id = o.run_id
        JOIN ({self._placed_calls()}
        ) AS c ON c.run_id = o.run_id
        WHERE o.kind = :kind AND o.tree_enter < c.tree_enter AND c.tree_leave < o.tree_leave
        GROUP BY o.run_id, o.span_id
      ) AS u ON u.run_id = p.run_id AND u.span_id = p.span_id
      WHERE p.kind = :kind AND {named("p", self.span_name)}
    ) AS e"""

    def _placed_calls(self) -> str:
        return f"""
          SELECT c.run_id AS run_id, {_CALL_LOW} AS low, {_CALL_HIGH} AS high,
                 z.tree_enter AS tree_enter, z.tree_leave AS tree_leave
          FROM llm_calls AS c
          JOIN spans AS z ON z.run_id = c.run_id AND z.span_id = c.span_id"""

    @property
    def _params(self) -> dict[str, str | int]:
        kind = {} if self.span_type == "llm" else {"kind": kind_of(self.span_type)}
        return {"max_tokens": self.max_tokens, **kind}

    def query(self) -> Query:
        """Count the spans, those over the budget for sure, and those that may be; name them where any is over."""
        calls = self.span_type == "llm"
        # Of an unknown number of calls some are not among the rows.
        unrecorded = "CASE WHEN t.llm_calls IS NULL THEN 1 ELSE 0 END" if calls else "0"
        return Query(
            f"""
SELECT g.run_id AS run_id, g.spans AS spans, g.too_many AS too_many, g.open_ones AS open_ones, g.largest AS largest,
       g.unrecorded AS unrecorded,
       CASE WHEN g.too_many > 0 THEN FALSE WHEN g.spans = 0 OR g.open_ones > 0 OR g.unrecorded > 0 THEN NULL ELSE TRUE END AS holds,
       CASE WHEN g.too_many > 0 THEN NULL WHEN g.spans = 0 THEN '{"llm_calls" if calls else "spans"}'
            WHEN g.open_ones > 0 THEN 'llm_calls.input_tokens' WHEN g.unrecorded > 0 THEN 'llm_calls' ELSE NULL END AS missing,
       CASE WHEN g.too_many > 0 THEN FALSE ELSE TRUE END AS settled,
       CASE WHEN {still_open("g.run_id")} THEN 1 ELSE 0 END AS still_open
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.unrecorded) AS unrecorded, count(f.low) AS spans,
         max(f.low) AS largest,
         count(CASE WHEN f.low > :max_tokens THEN 1 END) AS too_many,
         count(CASE WHEN f.low <= :max_tokens AND (f.high IS NULL OR f.high > :max_tokens) THEN 1 END) AS open_ones
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, {unrecorded} AS unrecorded, NULL AS low, NULL AS high
    FROM run_totals AS t
    JOIN selected_runs AS s ON s.run_id = t.run_id
    UNION ALL
    SELECT h.run_id AS run_id, 0 AS has_trace, 0 AS unrecorded, h.low AS low, h.high AS high
    FROM ({self._amounts()}
    ) AS h
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""",
            self._params,
        )

    def details(self) -> Query:
        """Return every span over the budget, the largest first."""
        return Query(
            f"""
SELECT h.run_id AS run_id, h.span_id AS span_id, h.name AS name, h.low AS tokens
FROM ({self._spans()}
) AS h
WHERE h.low > :max_tokens
ORDER BY run_id, tokens DESC, h.start_ns, span_id
""",
            self._params,
        )

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Name the spans over the budget."""
        over = [{name: detail[name] for name in ("span_id", "name", "tokens")} for detail in details]
        return Outcome(row["run_id"], False, not row["still_open"], "", {**row, "over": over})

    def evidence(self) -> Query:
        """Return the spans with most tokens, and those whose tokens are unknown."""
        return Query(
            f"""
SELECT h.run_id AS run_id, h.span_id AS span_id,
       h.name || ': ' || CASE WHEN h.high IS NULL THEN 'at least ' ELSE '' END || h.low || ' tokens' AS why,
       row_number() OVER (
         PARTITION BY h.run_id, CASE WHEN h.high IS NULL THEN 1 ELSE 0 END
         ORDER BY h.low DESC, h.start_ns, h.span_id) AS rank
FROM ({self._spans()}
) AS h
""",
            {name: value for name, value in self._params.items() if name != "max_tokens"},
        )

    def actual(self, outcome: Outcome) -> Any:
        """Return the number of spans, the largest, and all that are over the budget."""
        row = outcome.row
        return {"spans": row["spans"], "largest": row["largest"], "over": row.get("over", [])}

    def explain(self, outcome: Outcome) -> str:
        """Say which spans are over the budget."""
        row = outcome.row
        which = f"{self.span_type} span" + (f" with {self.span_name!r} in its name" if self.span_name else "")
        if not row["spans"]:
            return f"There is no {which}, so its tokens are unknown."
        among = f"among {plural(row['spans'], 'span')}"
        if outcome.holds:
            return f"No {which} used more than {self.max_tokens} tokens, {among}; the largest used {row['largest']}."
        if outcome.holds is None and not row["open_ones"]:
            return f"More calls were made than the {plural(row['spans'], 'recorded call')}: their tokens are unknown."
        if outcome.holds is None:
            return f"{plural(row['open_ones'], 'span')} {among} may have used more than {self.max_tokens} tokens."
        over = row["over"]
        listed = ", ".join(f"`{span['name']}` {span['tokens']}" for span in over[:_SHOWN])
        more = f" and {len(over) - _SHOWN} more" if len(over) > _SHOWN else ""
        return f"{plural(len(over), 'span')} used more than {self.max_tokens} tokens, {among}: {listed}{more}."

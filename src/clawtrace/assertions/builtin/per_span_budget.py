"""`per_span_budget`: how many tokens one span used."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.bounds import Natural, interval, number_or_bounds, plural
from clawtrace.assertions.forms.calls import ANSWERED
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.sources import Source
from clawtrace.assertions.forms.where import Where, is_open
from clawtrace.assertions.spans.named_spans import NamedSpans, SpanName, SpanType

__all__ = ["PerSpanBudget"]

# The tokens of one model call: a failed call without usage used none, an answered one an unknown number.
_LOW = "coalesce(c.input_tokens, 0) + coalesce(c.output_tokens, 0)"
_HIGH = (
    "CASE WHEN c.outcome = 'error' AND c.input_tokens IS NULL AND c.output_tokens IS NULL THEN 0"
    " ELSE c.input_tokens + c.output_tokens END"
)

_AMOUNTS = f"(SELECT c.run_id AS run_id, {_LOW} AS low, {_HIGH} AS high, c.certain AS certain FROM llm_calls AS c)"
"""The calls without names, where no name is expected: then no span is read."""

# The calls under each span of a kind.
_UNDER = f"""
        SELECT o.run_id AS run_id, o.span_id AS span_id, count(*) AS calls,
               CAST(sum(CASE WHEN c.certain THEN c.low ELSE 0 END) AS bigint) AS low,
               CASE WHEN count(c.high) = count(*) THEN CAST(sum(c.high) AS bigint) ELSE NULL END AS high
        FROM spans AS o
        JOIN selected_runs AS x ON x.run_id = o.run_id
        JOIN (
          SELECT c.run_id AS run_id, {_LOW} AS low, {_HIGH} AS high, c.certain AS certain,
                 z.tree_enter AS tree_enter, z.tree_leave AS tree_leave
          FROM llm_calls AS c
          JOIN spans AS z ON z.run_id = c.run_id AND z.span_id = c.span_id
        ) AS c ON c.run_id = o.run_id
        WHERE o.kind = :kind AND o.tree_enter < c.tree_enter AND c.tree_leave < o.tree_leave
        GROUP BY o.run_id, o.span_id"""

_SHOWN = "r.name || ': ' || CASE WHEN r.high IS NULL THEN 'at least ' ELSE '' END || r.low || ' tokens'"


class PerSpanBudget(Assertion):
    """No span of the type, with `span_name` in its name, used more than `max_tokens` tokens.

    One overlong prompt hides in a total. A model call counts input and output once, however many spans report it; any
    other span counts the usage recorded on it or the calls under it, whichever is more. The spans over the budget are
    the evidence, the largest first. A span whose tokens are unknown leaves the question open, and so do a run without any
    such span and model calls that are not recorded.

    Example:
        - type: per_span_budget
          max_tokens: 4000
          span_name: summarize
    """

    main_field = "max_tokens"
    requires = ("llm_calls.input_tokens", "llm_calls.output_tokens", "spans.name", "spans.kind")

    max_tokens: Natural
    """Most tokens of one span, input and output together."""
    span_type: SpanType = "llm"
    """The kind of the spans; `subagent` is `agent`."""
    span_name: SpanName | None = None
    """Text that the span's name contains, case-sensitively, or `glob:`, `re:`, `literal:` for the whole name; by default every name."""

    def _others(self) -> str:
        """The usage recorded on a span, or the sum of the calls under it; the larger where both are known."""
        return f"""(
      SELECT e.run_id AS run_id, e.tree_enter AS tree_enter, e.span_id AS span_id, e.name AS name, TRUE AS certain,
             CASE WHEN e.own_low > e.under_low THEN e.own_low ELSE e.under_low END AS low,
             CASE WHEN e.under > e.own THEN e.under WHEN e.own IS NOT NULL THEN e.own
                  WHEN e.under >= e.own_low THEN e.under ELSE NULL END AS high
      FROM (
        SELECT p.run_id AS run_id, p.tree_enter AS tree_enter, p.span_id AS span_id, p.name AS name,
               {_LOW.replace("c.", "p.")} AS own_low, p.input_tokens + p.output_tokens AS own, coalesce(u.low, 0) AS under_low,
               CASE WHEN h.run_id IS NOT NULL THEN NULL WHEN u.calls > 0 THEN u.high
                    WHEN t.llm_calls_high > 0 OR t.failed_llm_attempts_low > 0 THEN 0 ELSE NULL END AS under
        FROM spans AS p
        JOIN run_totals AS t ON t.run_id = p.run_id
        LEFT JOIN (
          SELECT DISTINCT p.run_id AS run_id FROM gaps AS p WHERE p.relation = 'llm_calls' AND {ANSWERED.gap}
        ) AS h ON h.run_id = p.run_id
        LEFT JOIN ({_UNDER}
        ) AS u ON u.run_id = p.run_id AND u.span_id = p.span_id
        WHERE p.kind = :kind AND {self._spans.named("p")}
      ) AS e
    )"""

    def _source(self) -> Source:
        if self.span_type != "llm":
            return Source(self._others(), number="tree_enter", relation="spans")
        calls = self._spans.calls(f"{_LOW} AS low, {_HIGH} AS high")
        return Source(_AMOUNTS if self.span_name is None else calls, rows=calls, relation="llm_calls")

    @property
    def _spans(self) -> NamedSpans:
        return NamedSpans(self.span_type, self.span_name)

    def question(self) -> Count:
        """Count the spans over the budget."""
        calls = self.span_type == "llm"
        over = Where(
            f"CASE WHEN {is_open('r.run_id')} THEN NULL WHEN r.low > :max_tokens THEN TRUE WHEN r.high <= :max_tokens THEN FALSE ELSE NULL END",
            ANSWERED.gap if calls else "TRUE",
            ("input_tokens", "output_tokens"),
            self._spans.resolve,
            {"max_tokens": self.max_tokens} | ({} if calls else self._spans.params),
        )
        return Count(
            self._source(),
            (CountedRows(over, max=0, noun="span", of=f" over {self.max_tokens} tokens"),),
            shown=_SHOWN,
            order="-r.low",
            needs_row=True,
            greatest={"largest": "r.low"},
        )

    def actual(self, outcome: Outcome) -> Any:
        """Return the number of spans, the largest, and how many are over the budget."""
        row = outcome.row
        return {"spans": row["seen"], "largest": row["largest"], "over": number_or_bounds(row["low"], row["high"])}

    def explain(self, outcome: Outcome) -> str:
        """Return how many spans are over the budget."""
        row = outcome.row
        if not row["seen"]:
            return f"There is no {self.span_type} span{self._spans} for sure, so its tokens are unknown."
        among = f"among {plural(row['seen'], 'span')}; the largest used {row['largest']}"
        if outcome.holds:
            return f"No {self.span_type} span{self._spans} used more than {self.max_tokens} tokens, {among}."
        found = interval(row["low"], row["high"], "span")
        may = "may have used" if outcome.holds is None else "used"
        return f"{found[0].upper()}{found[1:]} {may} more than {self.max_tokens} tokens, {among}."

"""`trace_cost`: what the run cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.forms.bounds import Amount, number_or_bounds, plural
from clawtrace.assertions.forms.calls import calls_evidence
from clawtrace.assertions.forms.total import Sum, Total
from clawtrace.model.query import Query
from clawtrace.support.figures import beside

__all__ = ["TraceCost"]

# A sum of prices in binary floating point may miss the limit it equals by its last bits.
_ROUNDING_USD = 1e-9

_UNPRICED = "c.cost_usd IS NULL AND (c.outcome IS NULL OR c.outcome = 'ok' OR c.input_tokens IS NOT NULL OR c.output_tokens IS NOT NULL)"

_MODELS = f"""LEFT JOIN (
    SELECT c.run_id AS run_id, count(*) AS unpriced, min(c.model) AS first_model, max(c.model) AS last_model,
           count(CASE WHEN c.input_tokens IS NULL OR c.output_tokens IS NULL THEN 1 END) AS unrecorded
    FROM llm_calls AS c
    JOIN selected_runs AS q ON q.run_id = c.run_id
    WHERE {_UNPRICED}
    GROUP BY c.run_id
  ) AS u ON u.run_id = t.run_id"""

_PRICED = calls_evidence(
    "CASE WHEN c.cost_usd IS NULL THEN 'no known cost'"
    " ELSE '' || c.cost_usd || ' USD (' || coalesce(c.cost_source, 'unknown source') || ')' END",
    "coalesce(c.cost_usd, 0)",
    "c.cost_usd IS NULL",
    ("cost_usd",),
)
_CALLS = Query(f"""{_PRICED.sql}UNION ALL
SELECT k.run_id AS run_id, k.span_id AS span_id, 'what is cached costs less' AS why, k.reason AS reason, 2 AS rank
FROM doubts AS k JOIN selected_runs AS s ON s.run_id = k.run_id
JOIN run_totals AS t ON t.run_id = k.run_id AND t.cost_low < t.cost_high WHERE k.relation = 'llm_calls' AND k.row_no IS NULL AND k.column_name = 'cache_read_tokens'
""")
"""The dearest calls, those without a price, and why; and why the cost is an interval where the cached tokens are unknown."""


class TraceCost(Assertion):
    """The run's model calls together cost at most `max_usd` US dollars.

    Unknown cached tokens make the cost of a call an interval, from all of its input cached to none of it.
    A call without a recorded cost and without a price makes the cost an interval: over the limit for sure fails, under it
    for sure passes, anything else is undecided and names the models without a price. Without any cost the run only warns.

    Example:
        - type: trace_cost
          max_usd: 0.05
    """

    main_field = "max_usd"
    requires = ("llm_calls.cost_usd",)
    warns_when_absent = True

    max_usd: Amount
    """Highest cost, in US dollars."""

    def question(self) -> Sum:
        """Compare the cost; nothing is answered where no call has a cost and one may have had."""
        names = ("unpriced", "unrecorded", "first_model", "last_model")
        return Sum(
            "llm_calls.cost_usd",
            (Total.of("cost", max=self.max_usd + _ROUNDING_USD),),
            {"priced": "t.priced_calls"} | {name: f"u.{name}" for name in names},
            joins=_MODELS,
            settles=True,
            absent="""CASE WHEN t.priced_calls > 0 THEN FALSE WHEN t.cost_high IS NULL OR
           t.llm_calls_high + coalesce(t.failed_llm_attempts_high, 1) = 0 THEN TRUE ELSE FALSE END""",
            shown=_CALLS,
        )

    def actual(self, outcome: Outcome) -> Any:
        """Return the cost in US dollars, or its bounds."""
        low, high = (None if usd is None else round(usd, 12) for usd in (outcome.row["low"], outcome.row["high"]))
        return number_or_bounds(low or 0, high) if outcome.row["priced"] else None

    def explain(self, outcome: Outcome) -> str:
        """Return the cost and its limit in words, and the models without a price."""
        row, limit = outcome.row, f"{_plain(f'{self.max_usd:g}')} USD"
        low, high = row["low"], row["high"]
        if outcome.holds is not None:
            bound, usd = ("at most ", high) if outcome.holds and low != high else ("at least ", low)
            exact = "" if low == high else bound
            return f"The run cost {exact}{self._digits(usd)} USD, {'within' if outcome.holds else 'over'} {limit}."
        if not row["priced"]:
            return f"Whether the run cost at most {limit} is unknown: {_because(row)}."
        if high is not None:
            return f"The run cost from {self._digits(low)} to {self._digits(high)} USD, expected at most {limit}."
        return f"The run cost at least {self._digits(low)} USD, expected at most {limit}: {_because(row)}."

    def _digits(self, usd: float) -> str:
        return _plain(beside(usd, self.max_usd, written=".6g"))


def _plain(number: str) -> str:
    """Return a number without an exponent: ``0.0000135``, and not ``1.35e-05``."""
    return f"{Decimal(number):f}"


def _because(row: Row) -> str:
    """Return which models have no price (the first and the last by name), or unknown tokens."""
    if not row["unpriced"]:
        return "there may be calls without a cost" if row["priced"] else "no model call with a cost is recorded"
    names = dict.fromkeys(row[name] or "unknown model" for name in ("first_model", "last_model"))
    what = "unknown tokens of" if row["unrecorded"] == row["unpriced"] else "no price for"
    return f"{what} {' and '.join(map(repr, names))} ({plural(row['unpriced'], 'call')})"

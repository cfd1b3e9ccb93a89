"""`trace_cost`: what the run cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.counting.apart import still_open
from clawtrace.assertions.counting.bounds import Amount, plural
from clawtrace.model.query import Query

__all__ = ["TraceCost"]

_NO_CALL = "llm_calls"
_NO_TOKENS = "run_totals.input_tokens"
_NO_PRICE = "llm_calls.cost_source"
_SOME_PRICES = "llm_calls.cost_usd"
_TOKENS = "llm_calls.input_tokens"
_CACHED = "llm_calls.cache_read_tokens"
_CALL = "call"
# A sum of prices in binary floating point may miss the limit it equals by its last bits.
_ROUNDING_USD = "1e-9"


class TraceCost(Assertion):
    """The run's model calls together cost at most `max_usd` US dollars.

    Unknown cached tokens make the cost of a call an interval, from all of its input cached to none of it.
    A call without a recorded cost and without a price makes the cost an interval: over the limit for sure fails, under it
    for sure passes, anything else is undecided and names the models without a price. Without any cost the run only warns.
    A span that records the same call can lower the sum: over the limit is final once the run is closed.

    Example:
        - type: trace_cost
          max_usd: 0.05
    """

    growth = "exact"
    main_field = "max_usd"
    requires = ("llm_calls.cost_usd",)
    warns_when_missing = frozenset({_NO_CALL, _NO_TOKENS, _NO_PRICE})

    max_usd: Amount
    """Highest cost, in US dollars."""

    def query(self) -> Query:
        """Compare the interval of the cost; undecided runs go on to have their models named."""
        return Query(
            f"""
SELECT g.run_id AS run_id, g.holds AS holds, CASE WHEN g.holds IS NULL THEN FALSE ELSE TRUE END AS settled,
       CASE WHEN NOT g.holds AND NOT {still_open("g.run_id")} THEN TRUE ELSE FALSE END AS final,
       g.low AS low, g.high AS high, g.priced AS priced
FROM (
  SELECT t.run_id AS run_id, coalesce(t.cost_low, 0) AS low, t.cost_high AS high, t.priced_calls AS priced,
         CASE WHEN t.cost_low > :max_usd + {_ROUNDING_USD} THEN FALSE
              WHEN t.llm_calls + t.failed_llm_attempts = 0 AND t.priced_calls = 0 THEN NULL
              WHEN t.cost_high <= :max_usd + {_ROUNDING_USD} THEN TRUE ELSE NULL END AS holds
  FROM run_totals AS t
  JOIN selected_runs AS s ON s.run_id = t.run_id
) AS g
""",
            {"max_usd": self.max_usd},
        )

    def details(self) -> Query:
        """Return the models of calls without a cost, and of how many calls the tokens are unknown too."""
        return Query("""
SELECT c.run_id AS run_id, coalesce(c.model, 'unknown model') AS model, count(*) AS calls,
       count(CASE WHEN c.input_tokens IS NULL OR c.output_tokens IS NULL THEN 1 END) AS unrecorded
FROM llm_calls AS c
JOIN selected_runs AS s ON s.run_id = c.run_id
WHERE c.cost_usd IS NULL AND (c.outcome <> 'error' OR c.input_tokens IS NOT NULL OR c.output_tokens IS NOT NULL)
GROUP BY c.run_id, coalesce(c.model, 'unknown model')
ORDER BY run_id, model
""")

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Keep the answer unknown, and name the models that have no price, and those whose tokens are unknown."""
        unrecorded = {detail["model"]: detail["unrecorded"] for detail in details if detail["unrecorded"]}
        unpriced = {detail["model"]: n for detail in details if (n := detail["calls"] - detail["unrecorded"])}
        if row["high"] is not None and row["priced"]:
            missing = _CACHED
        elif row["priced"]:
            missing = _SOME_PRICES if unpriced else _TOKENS
        else:
            missing = _NO_PRICE if unpriced else _NO_TOKENS if unrecorded else _NO_CALL
        return Outcome(row["run_id"], None, False, missing, {**row, "unpriced": unpriced, "unrecorded": unrecorded})

    def evidence(self) -> Query:
        """Return the dearest calls, and those without a price."""
        return Query("""
SELECT c.run_id AS run_id, c.span_id AS span_id,
       coalesce(c.model, 'unknown model') || ': '
         || CASE WHEN c.cost_usd IS NULL THEN 'no cost and no price'
                 ELSE '' || c.cost_usd || ' USD (' || coalesce(c.cost_source, 'unknown source') || ')' END AS why,
       row_number() OVER (
         PARTITION BY c.run_id, CASE WHEN c.cost_usd IS NULL THEN 1 ELSE 0 END
         ORDER BY coalesce(c.cost_usd, 0) DESC, c.call_no) AS rank
FROM llm_calls AS c
JOIN selected_runs AS s ON s.run_id = c.run_id
""")

    def actual(self, outcome: Outcome) -> Any:
        """Return the interval of the cost in US dollars, null where unbounded."""
        return [outcome.row["low"], outcome.row["high"]] if outcome.row["priced"] else None

    def explain(self, outcome: Outcome) -> str:
        """Say the cost against the limit, and which models have no price."""
        row = outcome.row
        limit = f"{self.max_usd:g} USD"
        if outcome.holds is not None:
            exact = row["high"] is not None and row["low"] == row["high"]
            bound, usd = ("at most ", row["high"]) if outcome.holds and not exact else ("at least ", row["low"])
            return (
                f"The run cost {'' if exact else bound}{usd:.6g} USD, {'within' if outcome.holds else 'over'} {limit}."
            )
        if row["high"] is not None and row["priced"]:
            return (
                f"The run cost from {row['low']:.6g} to {row['high']:.6g} USD, expected at most {limit}: how many tokens were cached is "
                "not recorded."
            )
        why = {"no price for": row["unpriced"], "no tokens recorded of": row["unrecorded"]}
        reasons = (
            f"{what} {', '.join(f'{model!r} ({plural(calls, _CALL)})' for model, calls in models.items())}"
            for what, models in why.items()
            if models
        )
        because = ", ".join(reasons) or "no model call with a cost is recorded"
        if not row["priced"]:
            return f"Whether the run cost at most {limit} is unknown: {because}."
        return f"The run cost at least {row['low']:.6g} USD, expected at most {limit}: {because}."

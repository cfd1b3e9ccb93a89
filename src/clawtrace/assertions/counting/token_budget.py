"""The token budget: one question that a trace assertion and its behavioural twin ask."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.counting.apart import still_open
from clawtrace.assertions.counting.bounds import Count, need_one_of
from clawtrace.model.query import Query

__all__ = ["TokenBudgetQuestion"]

# The interval of each sum: a lower bound, and the upper bound (NULL: unbounded).
_SUMS = {
    "input": ("g.input_low", "g.input_high"),
    "output": ("g.output_low", "g.output_high"),
    "total": ("g.input_low + g.output_low", "g.input_high + g.output_high"),
}


class TokenBudgetQuestion(Assertion):
    """Base of the assertions that the run's tokens stay within a budget.

    A sum can fall when a span arrives that tells of the same call: over the budget is final once the run is closed.
    """

    growth = "exact"
    requires = ("llm_calls.input_tokens", "llm_calls.output_tokens")

    max_input_tokens: Count | None = None
    """Most input tokens, cached ones included."""
    max_output_tokens: Count | None = None
    """Most output tokens, reasoning included."""
    max_total_tokens: Count | None = None
    """Most input and output tokens together."""

    @model_validator(mode="after")
    def _check(self) -> TokenBudgetQuestion:
        need_one_of(self, "max_input_tokens", "max_output_tokens", "max_total_tokens")
        return self

    def query(self) -> Query:
        """Compare each interval with its bound."""
        over = " OR ".join(f"{_SUMS[name][0]} > :max_{name}_tokens" for name in self._budgets)
        within = " AND ".join(f"{_SUMS[name][1]} <= :max_{name}_tokens" for name in self._budgets)
        input_asked = "FALSE" if set(self._budgets) == {"output"} else "g.input_high IS NULL"
        return Query(
            f"""
SELECT g.run_id AS run_id,
       CASE WHEN {over} THEN FALSE WHEN g.calls = 0 THEN NULL WHEN {within} THEN TRUE ELSE NULL END AS holds,
       CASE WHEN ({over}) AND NOT {still_open("g.run_id")} THEN TRUE ELSE FALSE END AS final,
       CASE WHEN {over} THEN NULL WHEN g.calls = 0 THEN 'llm_calls' WHEN {within} THEN NULL
            WHEN {input_asked} THEN 'llm_calls.input_tokens' ELSE 'llm_calls.output_tokens' END AS missing,
       g.input_low AS input_low, g.input_high AS input_high, g.input_known AS input_known,
       g.output_low AS output_low, g.output_high AS output_high, g.output_known AS output_known,
       g.calls AS calls, g.usage_calls AS usage_calls
FROM (
  SELECT t.run_id AS run_id,
         coalesce(t.input_tokens, t.input_tokens_low, 0) AS input_low, t.input_tokens AS input_high,
         coalesce(t.output_tokens, t.output_tokens_low, 0) AS output_low, t.output_tokens AS output_high,
         t.input_tokens_known AS input_known, t.output_tokens_known AS output_known,
         t.usage_calls AS usage_calls, coalesce(t.llm_calls, 1) + coalesce(t.failed_llm_attempts, 1) AS calls
  FROM run_totals AS t
  JOIN selected_runs AS s ON s.run_id = t.run_id
) AS g
""",
            {f"max_{name}_tokens": limit for name, limit in self._budgets.items()},
        )

    @property
    def _budgets(self) -> dict[str, int]:
        given = {"input": self.max_input_tokens, "output": self.max_output_tokens, "total": self.max_total_tokens}
        return {name: limit for name, limit in given.items() if limit is not None}

    def evidence(self) -> Query:
        """Return the calls with most tokens, and those that do not say theirs."""
        return Query("""
SELECT c.run_id AS run_id, c.span_id AS span_id,
       coalesce(c.model, 'unknown model') || ': '
         || CASE WHEN c.input_tokens IS NULL THEN 'unknown' ELSE '' || c.input_tokens END || ' input and '
         || CASE WHEN c.output_tokens IS NULL THEN 'unknown' ELSE '' || c.output_tokens END || ' output tokens' AS why,
       row_number() OVER (
         PARTITION BY c.run_id, CASE WHEN c.input_tokens IS NULL OR c.output_tokens IS NULL THEN 1 ELSE 0 END
         ORDER BY coalesce(c.input_tokens, 0) + coalesce(c.output_tokens, 0) DESC, c.call_no) AS rank
FROM llm_calls AS c
JOIN selected_runs AS s ON s.run_id = c.run_id
""")

    def actual(self, outcome: Outcome) -> Any:
        """Return the sums as intervals, null where unbounded."""
        row = outcome.row
        sums = {"input_tokens": [row["input_low"], row["input_high"]]}
        sums["output_tokens"] = [row["output_low"], row["output_high"]]
        return sums

    def explain(self, outcome: Outcome) -> str:
        """Say each sum against its budget."""
        if not outcome.row["calls"]:
            return "The tokens are unknown: no model call is recorded."
        if not outcome.row["usage_calls"] and not outcome.row["input_low"] + outcome.row["output_low"]:
            return "The tokens are unknown: no usage is recorded."
        said = "; ".join(self._sentence(name, limit, outcome) for name, limit in self._budgets.items())
        return said[0].upper() + said[1:] + "."

    def _sentence(self, name: str, limit: int, outcome: Outcome) -> str:
        row = outcome.row
        parts = ("input", "output") if name == "total" else (name,)
        low = sum(row[f"{part}_low"] for part in parts)
        exact = all(row[f"{part}_high"] is not None for part in parts)
        word = "over" if low > limit else "within" if exact else "at most"
        known = ""
        if not exact and row["usage_calls"]:
            known = f" known from {min(row[f'{part}_known'] for part in parts)} of {row['usage_calls']} calls"
        return f"{'' if exact else 'at least '}{low} {name} tokens{known}, {word} {limit}"

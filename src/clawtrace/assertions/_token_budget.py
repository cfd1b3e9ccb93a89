"""The token budget: one question that a trace assertion and its behavioural twin ask."""

from __future__ import annotations

from pydantic import model_validator

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.bounds import Natural, need_one_of
from clawtrace.assertions.forms.calls import calls_evidence
from clawtrace.assertions.forms.total import Sum, Total

__all__ = ["TokenBudgetQuestion"]

_SIDES = {"input": ("input_tokens",), "output": ("output_tokens",), "total": ("input_tokens", "output_tokens")}

_CALLS = calls_evidence(
    "CASE WHEN c.input_tokens IS NULL THEN 'unknown' ELSE '' || c.input_tokens END || ' input and '"
    " || CASE WHEN c.output_tokens IS NULL THEN 'unknown' ELSE '' || c.output_tokens END || ' output tokens'",
    "coalesce(c.input_tokens, 0) + coalesce(c.output_tokens, 0)",
    "c.input_tokens IS NULL OR c.output_tokens IS NULL",
    ("input_tokens", "output_tokens"),
)
"""The calls with most tokens, those that do not say theirs, and why."""


class TokenBudgetQuestion(Assertion):
    """Base of the assertions that the run's tokens stay within a budget."""

    requires = ("llm_calls.input_tokens", "llm_calls.output_tokens")

    max_input_tokens: Natural | None = None
    """Most input tokens, cached ones included."""
    max_output_tokens: Natural | None = None
    """Most output tokens, reasoning included."""
    max_total_tokens: Natural | None = None
    """Most input and output tokens together."""

    @model_validator(mode="after")
    def _check(self) -> TokenBudgetQuestion:
        need_one_of(self, "max_input_tokens", "max_output_tokens", "max_total_tokens")
        return self

    @property
    def _budgets(self) -> dict[str, int]:
        given = {"input": self.max_input_tokens, "output": self.max_output_tokens, "total": self.max_total_tokens}
        return {name: limit for name, limit in given.items() if limit is not None}

    def question(self) -> Sum:
        """Compare each sum with its bound."""
        totals = tuple(
            Total.of(*_SIDES[name], max=limit, noun=f"{name} token", key=f"_{name}")
            for name, limit in self._budgets.items()
        )
        return Sum(
            f"llm_calls.{'output' if list(self._budgets) == ['output'] else 'input'}_tokens",
            totals,
            {
                "usage_calls": "t.usage_calls",
                "known": "CASE WHEN t.input_tokens_known < t.output_tokens_known THEN t.input_tokens_known ELSE t.output_tokens_known END",
            },
            settles=True,
            shown=_CALLS,
        )

    def explain(self, outcome: Outcome) -> str:
        """Return each sum and its budget in words."""
        row = outcome.row
        said = self.form.sentence(outcome)
        if outcome.holds is None and row["known"] < row["usage_calls"]:
            return f"{said} Known are the tokens of {row['known']} of {row['usage_calls']} calls."
        return said

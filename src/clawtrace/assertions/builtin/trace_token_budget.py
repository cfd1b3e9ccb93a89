"""`trace_token_budget`: how many tokens the run used."""

from __future__ import annotations

from clawtrace.assertions._token_budget import TokenBudgetQuestion

__all__ = ["TraceTokenBudget"]


class TraceTokenBudget(TokenBudgetQuestion):
    """The tokens of all model calls together stay within the budget.

    Input counts cached tokens, output counts reasoning; each logical call counts once, however many spans repeat it.
    Where a call does not say its tokens, the sum is an interval: over the budget for sure fails, everything else is
    undecided. A span that records the same call can lower the sum: over the budget is final once the run is closed.

    Example:
        - type: trace_token_budget
          max_input_tokens: 20000
          max_output_tokens: 8000
    """

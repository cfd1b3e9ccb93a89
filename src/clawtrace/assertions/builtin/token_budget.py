"""`token_budget`: how many tokens the run used, with the fields of the seeds' behavioural assertion."""

from __future__ import annotations

from clawtrace.assertions._log_source import LogSource
from clawtrace.assertions._token_budget import TokenBudgetQuestion

__all__ = ["TokenBudget"]


class TokenBudget(LogSource, TokenBudgetQuestion):
    """The tokens of the whole run stay within the budget.

    It asks what `trace_token_budget` asks, of the same model calls, and also takes `log_path` and `run_id`. A call
    that does not say its tokens leaves the sum open: over the budget for sure fails, everything else is undecided. A span
    that records the same call can lower the sum: over the budget is final once the run is closed.

    Example:
        - type: token_budget
          max_total_tokens: 12000
          max_output_tokens: 4000
    """

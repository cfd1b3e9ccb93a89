"""What a campaign may spend before it starts nothing new (spec: config.md §7)."""

from __future__ import annotations

import threading

from clawtrace.model.verdict import RunResult

__all__ = ["Budget"]


class Budget:
    """Adds up what runs took, each attempt at one by itself; several threads may use it. Reused runs take nothing.

    What a run took is known when it has ended: runs that are at work when the budget is spent still end.

    Args:
        max_cost: in US dollars; None for no limit.
        max_tokens: input and output tokens together; None for no limit.
    """

    def __init__(self, max_cost: float | None = None, max_tokens: int | None = None) -> None:
        self._max_cost = max_cost
        self._max_tokens = max_tokens
        self._cost = 0.0
        self._tokens = 0
        self._without_cost = 0
        self._without_tokens = 0
        self._runs = 0
        self._judging_cost = 0.0
        self._judging_tokens = 0
        self._judging_without_cost = 0
        self._lock = threading.Lock()

    @property
    def is_limited(self) -> bool:
        """Whether anything can be spent: without a limit it never is."""
        return self._max_cost is not None or self._max_tokens is not None

    def add(self, result: RunResult) -> None:
        """Count what a run took that was just run.

        A cost counts with its upper bound where there is one, so that a limit is kept, and else with its lower bound.
        """
        totals = result.totals
        with self._lock:
            self._runs += 1
            cost_high = totals.get("cost_high")
            self._cost += (totals.get("cost_low") or 0.0) if cost_high is None else cost_high
            self._tokens += sum(totals.get(f"{side}_tokens_low") or 0 for side in ("input", "output"))
            self._without_cost += cost_high is None
            self._without_tokens += any(totals.get(f"{side}_tokens") is None for side in ("input", "output"))

    def add_judging(self, cost: float | None, tokens: int) -> None:
        """Count what asking a judge once took; `cost` is None where the judge's model has no price."""
        with self._lock:
            self._judging_cost += cost or 0.0
            self._judging_tokens += tokens
            self._judging_without_cost += cost is None

    def spent(self) -> str:
        """Return why nothing new may be started or asked, in one sentence; empty while something is left."""
        with self._lock:
            cost, tokens = self._cost + self._judging_cost, self._tokens + self._judging_tokens
            if self._max_cost is not None and cost >= self._max_cost:
                by_judges = f", {self._judging_cost:.4f} of it by judges" if self._judging_cost else ""
                return f"{cost:.4f} USD have been spent{by_judges}, and `--max-cost` is {self._max_cost:g}{self._unknown_cost()}"
            if self._max_tokens is not None and tokens >= self._max_tokens:
                by_judges = f", {self._judging_tokens} of them by judges" if self._judging_tokens else ""
                return f"{tokens} tokens have been used{by_judges}, and `--max-tokens` is {self._max_tokens}{self._unknown_tokens()}"
            return ""

    def blind_spots(self) -> list[str]:
        """Return what a limit could not see, one sentence each."""
        with self._lock:
            found = []
            if self._max_cost is not None and self._without_cost:
                cost = self._cost + self._judging_cost
                found.append(
                    f"`--max-cost`: {cost:.4f} USD is a lower bound{self._unknown_cost()}; `model_pricing` gives "
                    "models a price, `--max-tokens` limits tokens"
                )
            if self._max_cost is not None and self._judging_without_cost:
                found.append(
                    f"`--max-cost`: a judge's model has no price, so {self._judging_without_cost} of its answers were not "
                    "counted; `model_pricing` gives it one"
                )
            if self._max_tokens is not None and self._without_tokens:
                tokens = self._tokens + self._judging_tokens
                found.append(f"`--max-tokens`: {tokens} tokens is a lower bound{self._unknown_tokens()}")
            return found

    def _unknown_cost(self) -> str:
        return f" (the cost of {self._without_cost} of {self._runs} runs is not known)" if self._without_cost else ""

    def _unknown_tokens(self) -> str:
        if not self._without_tokens:
            return ""
        return f" (the tokens of {self._without_tokens} of {self._runs} runs are not known)"

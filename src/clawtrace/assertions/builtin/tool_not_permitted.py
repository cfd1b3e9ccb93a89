"""`tool_not_permitted`: only allowed tools were used."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions._log_source import LogSource
from clawtrace.assertions.base import Outcome
from clawtrace.assertions.counting.attempts import attempts_evidence, attempts_query, describe_attempts
from clawtrace.assertions.counting.bounds import plural
from clawtrace.assertions.counting.everything import EVERY_ATTEMPT
from clawtrace.assertions.matching.matchers import Limiting
from clawtrace.model.query import Query, Resolve

__all__ = ["ToolNotPermitted"]

_MATCHING = "r.name NOT IN (SELECT m.value FROM allowed_tools AS m)"


class ToolNotPermitted(LogSource):
    """No tool outside of the allowed list was attempted.

    An agent that finds a way around its tools shows here first. An attempt that was executed, failed or was blocked by a
    guard counts; `count_blocked: false` forgives the blocked ones. A call that nothing executed is no attempt.

    Example:
        - type: tool_not_permitted
          allowed_tools: [read, write, "glob:memory.*"]
    """

    growth = "shrinking"
    main_field = "allowed_tools"
    requires = ("tool_calls.name", "tool_calls.outcome")
    actual_columns = ("ok", "failed", "blocked", "unclear")

    allowed_tools: tuple[Limiting, ...]
    """Names of the permitted tools, whole and case-sensitive, or `glob:`, `re:`, `literal:`; empty permits none."""
    count_blocked: bool = True
    """Whether an attempt that was denied counts; `false` forgives it."""

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct name whether the tool is permitted."""
        return (Resolve("allowed_tools", EVERY_ATTEMPT, "name", self._permitted),)

    def _permitted(self, name: str) -> tuple[int, ...]:
        return (0,) if any(tool(name) for tool in self.allowed_tools) else ()

    def query(self) -> Query:
        """Count the attempts of other tools."""
        return Query(attempts_query(_MATCHING, found=False, count_blocked=self.count_blocked))

    def evidence(self) -> Query:
        """Return the attempts of other tools, by start."""
        return Query(attempts_evidence(_MATCHING, count_blocked=self.count_blocked, everywhere=True))

    def expectation(self) -> Any:
        """Return the allowed list."""
        return {"only": [tool.text for tool in self.allowed_tools]}

    def explain(self, outcome: Outcome) -> str:
        """Name other tools that were invoked."""
        row = outcome.row
        if self.other_run(outcome):
            return self.other_run(outcome)
        if outcome.holds is None:
            return "Whether only permitted tools were attempted is unknown: no other tool is known for certain."
        if outcome.holds:
            forgiven = f"; {plural(row['blocked'], 'blocked attempt')} of other tools ignored" if row["blocked"] else ""
            return f"No tool outside of the allowed list was attempted{forgiven}."
        names = " and ".join(f"`{name}`" for name in sorted({row["first_tool"], row["last_tool"]}))
        return f"Tools outside of the allowed list were attempted {describe_attempts(outcome)}, among them {names}."

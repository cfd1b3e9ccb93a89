"""`tool_not_permitted`: only allowed tools were used."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions._log_source import LogSource
from clawtrace.assertions.base import Outcome
from clawtrace.assertions.forms.calls import attempts, split
from clawtrace.assertions.forms.count import Count
from clawtrace.assertions.forms.where import name_of
from clawtrace.assertions.matching.matchers import Limiting

__all__ = ["ToolNotPermitted"]


class ToolNotPermitted(LogSource):
    """No tool outside of the allowed list was attempted.

    An agent that finds a way around its tools shows here first. An attempt that was executed, failed or was blocked by a
    guard counts; `count_blocked: false` forgives the blocked ones. A call that nothing executed is no attempt.

    Example:
        - type: tool_not_permitted
          allowed_tools: [read, write, "glob:memory.*"]
    """

    main_field = "allowed_tools"
    requires = ("tool_calls.name", "tool_calls.outcome")

    allowed_tools: tuple[Limiting, ...]
    """Names of the permitted tools, whole and case-sensitive, or `glob:`, `re:`, `literal:`; empty permits none."""
    count_blocked: bool = True
    """Whether an attempt that was denied counts; `false` forgives it."""

    def question(self) -> Count:
        """Count the attempts at other tools, those in work that a timer started among them."""
        named = name_of(self._permitted, negated=True, of_null="NULL" if self.allowed_tools else "FALSE")
        return attempts(
            named, max=0, of=" at tools that are not allowed", count_blocked=self.count_blocked, everywhere=True
        )

    def _permitted(self, name: str) -> tuple[int, ...]:
        return (0,) if any(tool(name) for tool in self.allowed_tools) else ()

    def expectation(self) -> Any:
        """Return the allowed list."""
        return {"only": [tool.text for tool in self.allowed_tools]}

    def say(self, outcome: Outcome) -> str:
        """Name other tools that were attempted."""
        row = outcome.row
        if outcome.holds is None:
            return "A tool outside of the allowed list may have been attempted: no attempt at one is certain."
        if outcome.holds:
            unblocked = "" if self.count_blocked else ", but for blocked attempts"
            return f"No tool outside of the allowed list was attempted{unblocked}."
        names = " and ".join(f"`{name}`" for name in sorted({row["first_label"], row["last_label"]} - {None}))
        return f"Tools outside of the allowed list were attempted {split(row)}{names and f', among them {names}'}."

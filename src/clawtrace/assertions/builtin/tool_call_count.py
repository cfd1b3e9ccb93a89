"""`tool_call_count`: how often tools were called."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.forms.bounds import Counted, Natural, bounds_of, check_count
from clawtrace.assertions.forms.count import Count
from clawtrace.assertions.forms.tool_counts import attempts
from clawtrace.assertions.forms.where import ANY, name_is
from clawtrace.assertions.matching.matchers import Matcher

__all__ = ["ToolCallCount"]


class ToolCallCount(Assertion):
    """The number of tool calls is as asked: of one tool, or of all tools together.

    Every attempt counts, whatever came of it; a call that the model asked for and nothing carried out does not. A call
    without a name may be of the asked tool.

    Example:
        - type: tool_call_count
          tool: search
          min: 1
          max: 3
    """

    main_field = "count"
    requires = ("tool_calls.name", "tool_calls.outcome")

    count: Counted | None = None
    """The exact number of calls, or `{min, max}`."""
    min: Natural | None = None
    """Smallest number of calls."""
    max: Natural | None = None
    """Largest number of calls."""
    tool: Matcher | None = None
    """Name of the tool, whole and case-sensitive, or `glob:`, `re:`, `literal:`; by default all tools together."""

    @model_validator(mode="after")
    def _check(self) -> ToolCallCount:
        check_count(self, self.count, self.min, self.max)
        return self

    @property
    def _bounds(self) -> dict[str, int]:
        """`min` and `max`, an exact count being both; what is given together must hold together."""
        return bounds_of(self.count, self.min, self.max)

    def question(self) -> Count:
        """Count the attempts."""
        bounds = self._bounds
        named = name_is(self.tool) if self.tool else ANY
        of = f" of `{self.tool}`" if self.tool else ""
        return attempts(named, min=bounds.get("min"), max=bounds.get("max"), of=of, noun="tool call")

    def expectation(self) -> Any:
        """Return the bounds, and the tool."""
        return self._bounds | ({"tool": self.tool.text} if self.tool else {})

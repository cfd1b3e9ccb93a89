"""`tool_call_count`: how often tools were called."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions._call_count import CallCount
from clawtrace.assertions.forms.calls import attempts
from clawtrace.assertions.forms.count import Count
from clawtrace.assertions.forms.where import ANY, name_is
from clawtrace.assertions.matching.matchers import Matcher

__all__ = ["ToolCallCount"]


class ToolCallCount(CallCount):
    """The number of tool calls is as asked: of one tool, or of all tools together.

    Every attempt counts, whatever came of it; a call that the model asked for and nothing carried out does not. A call
    without a name may be of the asked tool.

    Example:
        - type: tool_call_count
          tool: search
          min: 1
          max: 3
    """

    requires = ("tool_calls.name", "tool_calls.outcome")

    tool: Matcher | None = None
    """Name of the tool, whole and case-sensitive, or `glob:`, `re:`, `literal:`; by default all tools together."""

    def question(self) -> Count:
        """Count the attempts."""
        named = name_is(self.tool) if self.tool else ANY
        of = f" of `{self.tool}`" if self.tool else ""
        return attempts(named, **self.bounds, of=of, noun="tool call")

    def expectation(self) -> Any:
        """Return the bounds, and the tool."""
        return self.bounds | ({"tool": self.tool.text} if self.tool else {})

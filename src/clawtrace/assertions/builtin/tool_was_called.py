"""`tool_was_called`: a tool was used."""

from __future__ import annotations

from clawtrace.assertions._log_source import LogSource
from clawtrace.assertions.base import Outcome
from clawtrace.assertions.forms.calls import attempts, split
from clawtrace.assertions.forms.count import Count
from clawtrace.assertions.forms.where import name_is
from clawtrace.assertions.matching.matchers import Matcher

__all__ = ["ToolWasCalled"]


class ToolWasCalled(LogSource):
    """The tool was called at least once: executed, failed or blocked.

    It shows that the agent reached for the tool, not that the tool did its work: the message counts what failed or was
    blocked, and `tool_call` with `status: ok` asks for success. A call that nothing executed is no call.

    Example:
        - type: tool_was_called
          tool: sessions_spawn
    """

    main_field = "tool"
    requires = ("tool_calls.name", "tool_calls.outcome")

    tool: Matcher
    """Name of the tool, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""

    def question(self) -> Count:
        """Count the attempts."""
        return attempts(name_is(self.tool), min=1, of=f" of `{self.tool}`", noun="call")

    def say(self, outcome: Outcome) -> str:
        """Return how often the tool was called."""
        if outcome.holds:
            return f"`{self.tool}` was called {split(outcome.row)}."
        if outcome.holds is None:
            return f"`{self.tool}` may have been called: no call of it is certain."
        assert isinstance(self.form, Count)
        return f"`{self.tool}` was never called.{self.form.asked_words(outcome.row)}"

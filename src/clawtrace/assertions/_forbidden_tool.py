"""The forbidden tool: one question that a trace assertion and its behavioural twin ask."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.calls import attempts, split
from clawtrace.assertions.forms.count import Count
from clawtrace.assertions.forms.where import name_is
from clawtrace.assertions.matching.matchers import Matcher

__all__ = ["ForbiddenTool"]


class ForbiddenTool(Assertion):
    """Base of the assertions that a tool was never attempted."""

    main_field = "tool"
    requires = ("tool_calls.name", "tool_calls.outcome")

    tool: Matcher
    """Name of the tool, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""
    count_blocked: bool = True
    """Whether an attempt that was denied counts; `false` forgives it."""

    def question(self) -> Count:
        """Count the attempts, those in work that a timer started among them."""
        named = name_is(self.tool)
        return attempts(named, max=0, of=f" of `{self.tool}`", count_blocked=self.count_blocked, everywhere=True)

    def expectation(self) -> Any:
        """Return the forbidden tool."""
        return {"never": self.tool.text}

    def explain(self, outcome: Outcome) -> str:
        """Return how often the tool was attempted."""
        row = outcome.row
        if outcome.holds is None:
            return f"`{self.tool}` may have been attempted, and must not be: no attempt of it is certain."
        if not outcome.holds:
            return f"`{self.tool}` was attempted {split(row)}; it must not be."
        unblocked = "" if self.count_blocked else ", but for blocked attempts"
        assert isinstance(self.form, Count)
        return f"`{self.tool}` was never attempted{unblocked}.{self.form.asked_words(row)}"

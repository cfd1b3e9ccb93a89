"""The forbidden tool: one question that a trace assertion and its behavioural twin ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.counting.attempts import attempts_evidence, attempts_query, describe_attempts
from clawtrace.assertions.counting.bounds import plural
from clawtrace.assertions.counting.everything import EVERY_ATTEMPT
from clawtrace.assertions.counting.handoffs import HANDED_OVER, handed_over, handoff_words
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.model.query import Query, Resolve

__all__ = ["ForbiddenTool"]

_MATCHING = "r.name IN (SELECT m.value FROM asked_tool AS m)"


class ForbiddenTool(Assertion):
    """Base of the assertions that a tool was never attempted."""

    growth = "shrinking"
    main_field = "tool"
    requires = ("tool_calls.name", "tool_calls.outcome")
    actual_columns = ("ok", "failed", "blocked", "unclear")

    tool: Matcher
    """Name of the tool, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""
    count_blocked: bool = True
    """Whether an attempt that was denied counts; `false` forgives it."""

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide the tool's name once per distinct name."""
        return (Resolve("asked_tool", EVERY_ATTEMPT, "name", self.tool.items, names=self.tool.names),)

    def query(self) -> Query:
        """Count the attempts."""
        return Query(attempts_query(_MATCHING, found=False, count_blocked=self.count_blocked, handoffs=True))

    def details(self) -> Query:
        """Return the names of tools that only handed over to another agent."""
        return Query(HANDED_OVER)

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Keep the answer, and note the handoff that was meant."""
        return handed_over(self.outcome(row), details, self.tool)

    def evidence(self) -> Query:
        """Return the attempts, by start."""
        return Query(attempts_evidence(_MATCHING, count_blocked=self.count_blocked, everywhere=True))

    def expectation(self) -> Any:
        """Return the forbidden tool."""
        return {"never": self.tool.text}

    def explain(self, outcome: Outcome) -> str:
        """Say how often the tool was attempted."""
        if outcome.holds is None:
            return f"Whether `{self.tool}` was attempted is unknown: no attempt of it is certain."
        if not outcome.holds:
            return f"`{self.tool}` was attempted {describe_attempts(outcome)}; it must not be."
        forgiven = f"; {plural(outcome.row['blocked'], 'blocked attempt')} ignored" if outcome.row["blocked"] else ""
        return f"`{self.tool}` was never attempted{forgiven}.{handoff_words(outcome)}"

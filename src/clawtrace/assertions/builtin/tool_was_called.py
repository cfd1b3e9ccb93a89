"""`tool_was_called`: a tool was used."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.assertions._log_source import LogSource
from clawtrace.assertions.base import Outcome, Row
from clawtrace.assertions.counting.attempts import attempts_evidence, attempts_query, describe_attempts
from clawtrace.assertions.counting.handoffs import HANDED_OVER, handed_over, handoff_words
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.model.query import Query, Resolve

__all__ = ["ToolWasCalled"]

_MATCHING = "r.name IN (SELECT m.value FROM asked_tool AS m)"


class ToolWasCalled(LogSource):
    """The tool was called at least once: executed, failed or blocked.

    It shows that the agent reached for the tool, not that the tool did its work: the message counts what failed or was
    blocked, and `tool_call` with `status: ok` asks for success. A call that nothing executed is no call.

    Example:
        - type: tool_was_called
          tool: sessions_spawn
    """

    growth = "growing"
    main_field = "tool"
    requires = ("tool_calls.name", "tool_calls.outcome")
    actual_columns = ("ok", "failed", "blocked", "unclear")

    tool: Matcher
    """Name of the tool, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide the tool's name once per distinct name."""
        return (Resolve("asked_tool", "run_tools", "name", self.tool.items, names=self.tool.names),)

    def query(self) -> Query:
        """Count the calls."""
        return Query(attempts_query(_MATCHING, found=True, handoffs=True))

    def details(self) -> Query:
        """Return the names of tools that only handed over to another agent."""
        return Query(HANDED_OVER)

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Keep the answer, and note the handoff that was meant."""
        return handed_over(self.outcome(row), details, self.tool)

    def evidence(self) -> Query:
        """Return the calls, by start."""
        return Query(attempts_evidence(_MATCHING))

    def explain(self, outcome: Outcome) -> str:
        """Say how often the tool was called."""
        if self.other_run(outcome):
            return self.other_run(outcome)
        if outcome.holds is None:
            return f"Whether `{self.tool}` was called is unknown: no call of that name is recorded."
        if outcome.holds:
            return f"`{self.tool}` was called {describe_attempts(outcome)}."
        return f"`{self.tool}` was never called.{handoff_words(outcome)}"

"""`tool_call_count`: how often tools were called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import model_validator

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.counting.apart import apart, still_open, tool_calls_apart
from clawtrace.assertions.counting.attempts import attempts_evidence, counted_attempts, describe_attempts
from clawtrace.assertions.counting.bounds import Count, Counted, bounds_of, check_count, decide_sql, plural, words
from clawtrace.assertions.counting.handoffs import HANDED_OVER, handed_over, handoff_words, has_handoff
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.model.query import Query, Resolve, Scalar

__all__ = ["ToolCallCount"]

_NAMED = "r.name IN (SELECT m.value FROM asked_tool AS m)"
_ANY = "TRUE"


class ToolCallCount(Assertion):
    """The number of tool calls is as asked: of one tool, or of all tools together.

    Executed, failed and blocked calls count; a call that the model requested and nothing executed does not. A call
    without a name may be of the asked tool. While the run is open two calls may still turn out to be one: a passed
    maximum or a reached minimum is final when enough of the calls are sure to stay apart.

    Example:
        - type: tool_call_count
          tool: search
          min: 1
          max: 3
    """

    growth = "exact"
    main_field = "count"
    requires = ("tool_calls.name", "tool_calls.outcome")

    count: Counted | None = None
    """The exact number of calls, or `{min, max}`."""
    min: Count | None = None
    """Smallest number of calls."""
    max: Count | None = None
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

    @property
    def _matching(self) -> str:
        return _NAMED if self.tool else _ANY

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide the tool's name once per distinct name."""
        if self.tool is None:
            return ()
        return (Resolve("asked_tool", "run_tools", "name", self.tool.items, names=self.tool.names),)

    def query(self) -> Query:
        """Count the calls; where calls cannot be recorded, at least those that are known.

        What no later call could change is left open while the run is, and two of the calls may become one.
        """
        bounds = self._bounds
        decided = "h.low > :max" if "max" in bounds else "h.low >= :min"
        # Calls that become one are still one: no call, or at least one, is decided by the first.
        first_decides = bounds["max"] == 0 if "max" in bounds else bounds["min"] <= 1
        waits = "1 = 0" if first_decides else f"{decided} AND {still_open('h.run_id')}"
        if self.tool:
            waits = f"({waits}) OR (h.high = 0 AND {has_handoff('h.run_id')})"
        sure = "g.ok + g.failed + g.blocked + g.unclear" + ("" if self.tool else " + g.nameless")
        params: dict[str, Scalar] = dict(bounds)
        return Query(
            f"""
SELECT h.run_id AS run_id, {decide_sql("h.low", "h.high", bounds.get("min"), bounds.get("max"))} AS holds,
       CASE WHEN {decided} THEN TRUE ELSE FALSE END AS final,
       CASE WHEN {waits} THEN FALSE ELSE TRUE END AS settled,
       h.low AS low, h.high AS high,
       h.ok AS ok, h.failed AS failed, h.blocked AS blocked, h.unclear AS unclear, h.nameless AS nameless,
       CASE WHEN h.high IS NULL THEN 'tool_calls' WHEN h.low < h.high THEN 'tool_calls.name' ELSE NULL END AS missing
FROM (
SELECT g.run_id AS run_id, {sure} AS low,
       CASE WHEN g.recordable = 0 THEN NULL ELSE g.ok + g.failed + g.blocked + g.unclear + g.nameless END AS high,
       g.ok AS ok, g.failed AS failed, g.blocked AS blocked, g.unclear AS unclear, g.nameless AS nameless
{counted_attempts(self._matching)}
WHERE g.has_trace = 1
) AS h
""",
            params,
        )

    def details(self) -> Query:
        """Return the calls that stay apart; of a tool also the names that only handed over to another agent."""
        if not self.tool:
            return Query(tool_calls_apart(_ANY))
        calls = tool_calls_apart(_NAMED.replace("r.name", "c.name"))
        return Query(
            f"""
SELECT a.run_id AS run_id, a.scope AS scope, a.n AS n, NULL AS name FROM ({calls}) AS a
UNION ALL
SELECT b.run_id AS run_id, NULL AS scope, 0 AS n, b.name AS name FROM ({HANDED_OVER}) AS b
"""
        )

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Keep the answer; it is final when enough calls stay apart to decide it."""
        bounds, sure = self._bounds, apart(details)
        final = sure > bounds["max"] if "max" in bounds else sure >= bounds["min"]
        outcome = Outcome(row["run_id"], bool(row["holds"]), final, row["missing"] or "", row)
        return handed_over(outcome, [one for one in details if one["name"]], self.tool) if self.tool else outcome

    def evidence(self) -> Query:
        """Return the calls that count, by start."""
        return Query(attempts_evidence(self._matching))

    def expectation(self) -> Any:
        """Return the bounds, and the tool."""
        return self._bounds | ({"tool": self.tool.text} if self.tool else {})

    def actual(self, outcome: Outcome) -> Any:
        """Return the count as an interval, null where unbounded."""
        return [outcome.row["low"], outcome.row["high"]]

    def explain(self, outcome: Outcome) -> str:
        """Say the count against the bounds."""
        row = outcome.row
        what = f"`{self.tool}` was called" if self.tool else "Tools were called"
        asked = f"expected {words(self._bounds.get('min'), self._bounds.get('max'))}"
        named = describe_attempts(outcome)
        if row["high"] is None:
            return f"{what} at least {named}, {asked}; whether other calls were made cannot be known."
        if not row["nameless"]:
            if row["high"] == 0:
                what, named = (f"`{self.tool}` was", "never called") if self.tool else ("No tool", "was called")
            return f"{what} {named}, {asked}.{handoff_words(outcome)}"
        nameless = plural(row["nameless"], "call") + " without a name"
        if self.tool:
            return f"{what} {named}, and perhaps in {nameless}, {asked}."
        return f"{what} {named} by name, and {nameless}, {asked}."

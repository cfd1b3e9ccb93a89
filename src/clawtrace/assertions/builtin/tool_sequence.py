"""`tool_sequence`: tools were called in the expected order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from clawtrace.assertions import _order, _sequence_sql
from clawtrace.assertions._bounds import plural
from clawtrace.assertions.base import Assertion, Growth, Outcome, Row
from clawtrace.assertions.matchers import Matcher
from clawtrace.model.query import Query, Resolve

__all__ = ["ToolSequence"]

_FOREVER = float("inf")


class ToolSequence(Assertion):
    """The tool calls are as expected: in this order, exactly this list, or all of these.

    An agent that writes before it has searched gets the right file for the wrong reason. `ordered` finds the names in this
    order with others between them; `strict` allows nothing else; `contains` ignores the order, and `[a, a]` needs two.
    Executed, failed and blocked calls count. Calls that ran side by side have no order: any order of them that respects
    "ended before started" may meet the expectation, unless `order: start_time` asks for the order of starts. While the
    run is open two calls may still turn out to be one: what needs two calls of one name is not final then.

    Example:
        - type: tool_sequence
          expected: [memory.search, resend.send]
    """

    growth = "exact"
    main_field = "expected"
    requires = ("tool_calls.name", "tool_calls.start_ns", "tool_calls.end_ns")

    expected: tuple[Matcher, ...]
    """Tool names in order, whole and case-sensitive; or `glob:`, `re:`, `literal:`. Empty only with `strict`."""
    mode: Literal["ordered", "strict", "contains"] = "ordered"
    """`ordered`: others may come between; `strict`: nothing else; `contains`: any order, others allowed."""
    order: Literal["interval", "start_time"] = "interval"
    """`interval`: calls that overlap have no order; `start_time`: the plain order of starts."""

    @model_validator(mode="after")
    def _check(self) -> ToolSequence:
        if not self.expected and self.mode != "strict":
            problem = "an empty list asks nothing; with `mode: strict` it says that no tool is called"
            raise PydanticCustomError("empty", "{problem}", {"problem": problem, "field": "expected"})
        if self.mode == "contains" and "order" in self.model_fields_set:
            raise PydanticCustomError("dead_key", "`mode: contains` ignores the order", {"field": "order"})
        return self

    def growth_of(self) -> Growth:
        """More calls can only help, except to a strict list; of an open run two may still turn out to be one."""
        return "growing" if self.mode != "strict" and self._one_each else "exact"

    @property
    def _one_each(self) -> bool:
        return self._goal == 1 or (self._literal and len(self._distinct) == self._goal)

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct name which expectations it meets."""
        wanted = self._distinct if self.mode == "contains" and self._literal else self.expected
        items = list(enumerate(wanted))
        return (Resolve("expected_tools", "run_tools", "name", lambda name: [i for i, tool in items if tool(name)]),)

    @property
    def _literal(self) -> bool:
        return all(tool.literal is not None for tool in self.expected)

    @property
    def _distinct(self) -> tuple[Matcher, ...]:
        """The expected names without repetition (`literal:a` is `a`)."""
        return tuple({tool.literal or tool.text: tool for tool in self.expected}.values())

    def query(self) -> Query:
        """Settle what SQL can settle exactly."""
        wanted, by_start = len(self.expected), self.order == "start_time"
        if self.mode == "strict":
            return Query(_sequence_sql.strict_sql(wanted, by_start=by_start))
        if self.mode == "ordered":
            distinct = self._literal and len(self._distinct) == wanted
            return Query(_sequence_sql.ordered_sql(wanted, distinct=distinct, by_start=by_start))
        names = [tool.literal for tool in self.expected]
        needs = [names.count(tool.literal) for tool in self._distinct]
        return Query(_sequence_sql.contains_sql(needs, literal=self._literal))

    def details(self) -> Query:
        """Return the attempts by start."""
        return Query(_sequence_sql.details_sql())

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Search; first with what is known, then as if everything unknown were as wanted."""
        more = {**row, "tools": [detail["tool"] for detail in details]}
        if self.mode == "strict" and row["calls"] > self._goal:
            sure = not self._goal or not details[0]["still_open"] or (details[0]["apart"] or 0) > self._goal
            return Outcome(row["run_id"], False, sure, "", more)
        try:
            met = self._met(details, hopeful=False)
            holds = True if met == self._goal else None if self._met(details, hopeful=True) == self._goal else False
        except _order.SearchLimitError:
            return Outcome(row["run_id"], None, False, "tool_calls.start_ns", {**more, "given_up": True})
        more["met"] = met
        if holds and row["recordable"] == 0 and self.mode == "strict":
            holds = None
        if holds is False and row["recordable"] == 0:
            holds = None
        closed = bool(details) and not details[0]["still_open"]
        final = holds is True and self.mode != "strict" and (self._one_each or closed)
        missing = "" if holds is not None else "tool_calls" if row["recordable"] == 0 else self._unclear(details)
        return Outcome(row["run_id"], holds, final, missing, more)

    @property
    def _goal(self) -> int:
        return len(self.expected)

    def _met(self, details: Sequence[Row], *, hopeful: bool) -> int:
        """Return how many expectations are met; `hopeful` lets unknown names and times be whatever is wanted."""
        calls = [call for detail in details if (call := self._call(detail, hopeful)) is not None]
        if self.mode == "contains":
            return _order.matched([(call.items, 1) for call in calls], self._goal)
        if self.order == "start_time":
            calls = [
                call if call.start == -_FOREVER else _order.Call(call.items, place, place + 1)
                for place, call in enumerate(calls)
            ]
        if self.mode == "ordered":
            return _order.reach(calls, self._goal)
        whole = len(calls) == len(details) and _order.linearises(calls, self._goal)
        return self._goal if whole else 0

    def _call(self, detail: Row, hopeful: bool) -> _order.Call | None:
        """Return a call for the search; None when it cannot be placed."""
        tool, start, end = detail["tool"], detail["start_ns"], detail["end_ns"]
        met = range(self._goal) if hopeful else ()
        items = frozenset(met if tool is None else (i for i, wanted in enumerate(self.expected) if wanted(tool)))
        if start is None and self.mode != "contains":
            return _order.Call(items, -_FOREVER, _FOREVER) if hopeful else None
        begins = start or 0
        ends = _FOREVER if end is None and hopeful else max(end or 0, begins + 1)
        return _order.Call(items, begins, ends)

    @staticmethod
    def _unclear(details: Sequence[Row]) -> str:
        """Return the fact that is unknown."""
        columns = {"tool": "tool_calls.name", "start_ns": "tool_calls.start_ns", "end_ns": "tool_calls.end_ns"}
        return next((fact for key, fact in columns.items() if any(row[key] is None for row in details)), "")

    def evidence(self) -> Query:
        """Return the tool calls."""
        return Query(_sequence_sql.evidence_sql(unexpected_first=self.mode == "strict"))

    def expectation(self) -> Any:
        """Return the expected names."""
        return [tool.text for tool in self.expected]

    def actual(self, outcome: Outcome) -> Any:
        """Return the names of the calls by start; None where they were not fetched, since SQL alone saw them fit."""
        row = outcome.row
        if "tools" in row:
            return list(row["tools"])
        strict = self.mode == "strict" and outcome.holds
        return [row[f"tool_{place}"] for place in range(1, self._goal + 1)] if strict else None

    def explain(self, outcome: Outcome) -> str:
        """Say what was called against what was expected."""
        row, names = outcome.row, " → ".join(f"`{tool}`" for tool in self.expected) or "no tool call"
        seen = plural(row["calls"], "tool call")
        if row.get("given_up"):
            return f"Too many overlapping calls of the same tools among {seen} to decide whether {names} happened."
        if outcome.holds is None:
            return f"Whether {names} happened ({self.mode}) cannot be told from {seen}."
        loose = "; the order was not determined, calls ran side by side" if self._undetermined(row) else ""
        if outcome.holds:
            how = {"ordered": "in this order", "strict": "and nothing else", "contains": "in any order"}[self.mode]
            return f"{names} happened {how}, among {seen}{loose}."
        return self._failure(outcome, names, seen)

    def _undetermined(self, row: Row) -> bool:
        return self.mode == "strict" and self.order == "interval" and bool(row["overlapping"])

    def _failure(self, outcome: Outcome, names: str, seen: str) -> str:
        row = outcome.row
        if self.mode == "strict":
            tools = row.get("tools", [])
            for place, (tool, wanted) in enumerate(zip(tools, self.expected, strict=False), start=1):
                if row["calls"] == self._goal and (tool is None or not wanted(tool)):
                    return f"Call {place} of {row['calls']} was `{tool}` where `{wanted}` was expected ({names})."
            return f"{seen} where {self._goal} were expected ({names})."
        if self.mode == "ordered":
            missing = self.expected[row["met"]]
            after = f" after {' → '.join(f'`{tool}`' for tool in self.expected[: row['met']])}" if row["met"] else ""
            return f"`{missing}` was not called{after}, among {seen} (expected {names})."
        return f"Not all of {names} were called, among {seen}."

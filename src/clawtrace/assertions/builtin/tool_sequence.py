"""`tool_sequence`: tools were called in the expected order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.refused import refused
from clawtrace.assertions.trajectory import sequence_sql
from clawtrace.assertions.trajectory.partial_order import PartialOrder, edit_words
from clawtrace.assertions.trajectory.steps import ForbidBetween, OneOrMore, RequireCall, Step, named, text
from clawtrace.assertions.trajectory.trajectory import SearchLimitError
from clawtrace.model.query import Query, Resolve
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["ToolSequence"]


class ToolSequence(Assertion):
    """The tool calls are as expected: in this order, exactly this list, all of these, or in this partial order.

    An agent that writes before it has searched gets the right file for the wrong reason. `ordered` finds the names in this
    order with others between them; `strict` allows nothing else; `contains` ignores the order, and `[a, a]` needs two.
    `steps` say more than a list: any-order groups, optional and repeated parts. In `ordered` others may come between
    them, but a tool of an `optional` part, or of a `repeat` with `max`, is called only where the steps say.
    `forbid_between` and `require` are rules about every call of a step. Executed, failed and blocked calls count.
    Calls that ran side by side have no order: one order of all calls that respects "ended before started" must meet
    everything, unless `order: start_time` asks for the order of starts. The search is exact; where too many orders
    are possible the answer is unknown. A failure shows the smallest edit from the calls to what was expected.

    Example:
        - type: tool_sequence
          steps:
            - lookup_order
            - any_order: [check_stock, check_customer]
            - optional: ask_manager
            - {repeat: refund_order, min: 1, max: 3}
          forbid_between: {tools: ["glob:delete_*"], after: lookup_order, before: refund_order}
    """

    main_field = "expected"
    requires = ("tool_calls.name", "tool_calls.start_ns", "tool_calls.end_ns")

    expected: tuple[Matcher, ...] | None = None
    """Tool names in order, whole and case-sensitive; or `glob:`, `re:`, `literal:`. Empty only with `strict`."""
    steps: Annotated[tuple[Step, ...], Field(min_length=1)] | None = None
    """A partial order in place of `expected`: names, `{any_order: […]}`, `{optional: …}`, `{repeat: …, min: 1, max: 3}`,
    and lists of them, which keep their order inside of a group."""
    mode: Literal["ordered", "strict", "contains"] = "ordered"
    """`ordered`: others may come between; `strict`: nothing else; `contains`: any order, others allowed."""
    order: Literal["interval", "start_time"] = "interval"
    """`interval`: calls that overlap have no order; `start_time`: the plain order of starts."""
    forbid_between: Annotated[tuple[ForbidBetween, ...], OneOrMore] = ()
    """Tools that are not called from any call of a step (`after`) to the next call of another (`before`); one or a list."""
    require: Annotated[tuple[RequireCall, ...], OneOrMore] = ()
    """A `tool` that is called `before`, or `after`, every call of a step; one or a list."""

    @model_validator(mode="after")
    def _check(self) -> ToolSequence:
        if (self.expected is None) == (self.steps is None):
            found = "none" if self.steps is None else "both"
            raise refused(f"takes exactly one of `expected` and `steps`; found {found}", "expected")
        if not self._steps and self.mode != "strict":
            raise refused(
                "an empty list checks nothing; with `mode: strict` it means that no tool is called", "expected"
            )
        if self.mode == "contains":
            self._check_contains()
        if self.steps is not None and self.mode != "strict" and self._partial.nullable:
            raise refused("every step is optional, so a run without any call would pass", "steps")
        for field, rules in (("forbid_between", self.forbid_between), ("require", self.require)):
            for rule in rules:
                self._check_rule(field, rule)
        return self

    def _check_contains(self) -> None:
        if self.steps is not None:
            raise refused("`steps` have an order already: write `any_order` instead of `mode: contains`", "mode")
        if "order" in self.model_fields_set and not self._has_rules:
            raise refused("`mode: contains` ignores the order", "order")

    def _check_rule(self, field: str, rule: ForbidBetween | RequireCall) -> None:
        """Refuse a rule about a call that no step asks for: misspelt, it would never apply."""
        asked = [str(name) for step in self._steps for name in named(step)]
        for anchor in (rule.after, rule.before):
            if anchor is not None and str(anchor) not in asked:
                problem = (
                    f"`{anchor}` is not a step, so the rule may never apply; steps: {', '.join(dict.fromkeys(asked))}"
                )
                hint = did_you_mean(str(anchor), asked)
                raise refused(problem, field, hint)

    @property
    def _steps(self) -> tuple[Step, ...]:
        return (self.steps if self.steps is not None else self.expected) or ()

    @property
    def _has_rules(self) -> bool:
        return bool(self.forbid_between or self.require)

    @property
    def _is_partial(self) -> bool:
        """Whether more is asked than a list of names."""
        return self.steps is not None or self._has_rules

    @cached_property
    def _partial(self) -> PartialOrder:
        return PartialOrder(
            self._steps,
            strict=self.mode == "strict",
            any_order=self.mode == "contains",
            forbidden=self.forbid_between,
            required=self.require,
            by_start=self.order == "start_time",
        )

    @property
    def _listed(self) -> tuple[Matcher, ...]:
        """The names of `expected`; of steps every name."""
        return self.expected if self.expected is not None else tuple(n for step in self._steps for n in named(step))

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct name which expectations it meets."""
        wanted = self._distinct if self.mode == "contains" and self._literal else self._listed
        items = list(enumerate(wanted))
        names = tuple(name for tool in self._distinct for name in tool.names)

        def met(name: str) -> list[int]:
            return [i for i, tool in items if tool(name)]

        return (Resolve("expected_tools", "run_tools", "name", met, names=names),)

    @property
    def _literal(self) -> bool:
        return all(tool.literal is not None for tool in self._listed)

    @property
    def _distinct(self) -> tuple[Matcher, ...]:
        """The expected names without repetition (`literal:a` is `a`)."""
        return tuple({tool.literal or tool.text: tool for tool in self._listed}.values())

    def query(self) -> Query:
        """Settle what SQL can settle exactly."""
        if self.mode == "strict" and not self._is_partial:
            return Query(sequence_sql.strict_sql(self._goal))
        if self._literal and not self._is_partial:
            counted = Counter(tool.literal for tool in self._listed)
            if self.mode == "contains":
                return Query(sequence_sql.contains_sql(list(counted.values())))
            if self.order == "interval" and len(counted) == self._goal:
                return Query(sequence_sql.ordered_sql(self._goal))
        return Query(sequence_sql.partial_sql(without_calls=self._partial.nullable))

    def details(self) -> Query:
        """Return the attempts by start, and the names of tools that only handed over to another agent."""
        return Query(sequence_sql.details_sql())

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Search with what is known, then as if everything unknown were as wanted."""
        handoffs = [{"name": detail["tool"]} for detail in details if detail["handed_over"]]
        outcome = self._searched(row, [detail for detail in details if not detail["handed_over"]])
        return handed_over(outcome, handoffs, *self._listed)

    def _searched(self, row: Row, details: Sequence[Row]) -> Outcome:
        asked, more = self._partial, {**row, "details": details}
        too_many = asked.too_many(details)
        if too_many is not None:
            return Outcome(row["run_id"], False, too_many, "", more)
        try:
            holds = asked.answer(details)
        except SearchLimitError:
            return Outcome(row["run_id"], None, False, "tool_calls.start_ns", {**more, "given_up": True})
        if row["recordable"] == 0 and (holds is False or not asked.growing):
            holds = None
        closed = bool(details) and not details[0]["still_open"]
        final = holds is True and asked.growing and (asked.one_each or closed)
        missing = "" if holds is not None else "tool_calls" if row["recordable"] == 0 else self._unclear(details)
        return Outcome(row["run_id"], holds, final, missing, more)

    @property
    def _goal(self) -> int:
        return len(self._listed)

    @staticmethod
    def _unclear(details: Sequence[Row]) -> str:
        """Return the fact that is unknown."""
        columns = {"tool": "tool_calls.name", "start_ns": "tool_calls.start_ns", "end_ns": "tool_calls.end_ns"}
        return next((fact for key, fact in columns.items() if any(row[key] is None for row in details)), "")

    def evidence(self) -> Query:
        """Return the tool calls."""
        return Query(sequence_sql.evidence_sql(unexpected_first=self.mode == "strict"))

    def expectation(self) -> Any:
        """Return the expected names; of a partial order everything that is asked."""
        if not self._is_partial:
            return [tool.text for tool in self._listed]
        asked = self.model_dump(
            mode="json", include={"expected", "steps", "mode", "forbid_between", "require"}, exclude_none=True
        )
        return {name: value for name, value in asked.items() if value}

    def actual(self, outcome: Outcome) -> Any:
        """Return the names of the calls by start, and of a failure the edits to what was expected.

        None where the names were not fetched, since SQL alone saw them fit.
        """
        tools = self._called(outcome)
        if tools is None or outcome.holds is not False:
            return tools
        return {"tools": tools, "edits": self._edits(outcome)}

    def _called(self, outcome: Outcome) -> list[str | None] | None:
        row = outcome.row
        if "details" in row:
            return [detail["tool"] for detail in row["details"]]
        if not row["calls"]:
            return []
        as_listed = self.mode == "strict" and outcome.holds and self._literal
        return [tool.literal for tool in self._listed] if as_listed else None

    def _edits(self, outcome: Outcome) -> list[dict[str, Any]] | None:
        """Return the smallest edit script from the calls to what was expected; None where none is known."""
        return self._partial.edits(outcome.row.get("details", ()))

    def explain(self, outcome: Outcome) -> str:
        """Say what was called against what was expected."""
        row = outcome.row
        names = " → ".join(map(text, self._steps)) or "no tool call"
        seen = plural(row["calls"], "tool call")
        if row.get("given_up"):
            return f"Too many overlapping calls of the same tools among {seen} to decide whether {names} happened."
        if outcome.holds is None:
            untimed = sum(detail["start_ns"] is None for detail in row.get("details", ()))
            when = (
                f"; of {plural(untimed, 'call')} it is unknown when, because clocks contradict each other"
                if untimed
                else ""
            )
            return f"Whether {names} happened ({self.mode}) cannot be determined from {seen}{when}."
        if outcome.holds:
            how = {"ordered": "in this order", "strict": "and nothing else", "contains": "in any order"}[self.mode]
            ruled = ", within its rules" if self._has_rules else ""
            loose = "; the order is unknown, because calls ran concurrently" if self._undetermined(row) else ""
            return f"{names} happened {how}{ruled}, among {seen}{loose}."
        return f"{self._failure(outcome, names, seen)}{self._change(outcome)}{handoff_words(outcome)}"

    def _undetermined(self, row: Row) -> bool:
        if self.order != "interval" or (self.mode == "contains" and not self._is_partial):
            return False
        return _overlapping(row["details"]) if "details" in row else bool(row.get("overlapping"))

    def _change(self, outcome: Outcome) -> str:
        """Say the smallest edit."""
        edits = self._edits(outcome)
        if not edits:
            return ""
        return f" Smallest change: {edit_words(edits, [str(name) for name in self._called(outcome) or ()])}."

    def _failure(self, outcome: Outcome, names: str, seen: str) -> str:
        row, tools = outcome.row, self._called(outcome) or []
        if self._is_partial:
            how = {"ordered": "as described", "strict": "as the whole list", "contains": "all, within the rules"}[
                self.mode
            ]
            return f"{names} did not happen {how}, among {seen}."
        if self.mode == "strict":
            for place, (tool, wanted) in enumerate(zip(tools, self._listed, strict=False), start=1):
                if row["calls"] == self._goal and (tool is None or not wanted(tool)):
                    return f"Call {place} of {row['calls']} was `{tool}` where `{wanted}` was expected ({names})."
            return f"{seen} where {self._goal} were expected ({names})."
        if self.mode == "ordered":
            met = self._partial.met(row.get("details", ()), row["met"])
            missing = self._listed[met]
            after = f" after {' → '.join(f'`{tool}`' for tool in self._listed[:met])}" if met else ""
            return f"`{missing}` was not called{after}, among {seen} (expected {names})."
        return f"Not all of {names} were called, among {seen}."


def _overlapping(calls: Sequence[Row]) -> bool:
    """Return whether any call, by start, began before one that began earlier had ended."""
    latest = 0
    for call in calls:
        if call["start_ns"] is not None:
            if call["start_ns"] < latest:
                return True
            latest = max(latest, call["end_ns"] or 0, call["start_ns"] + 1)
    return False

"""`tool_sequence`: tools were called in the expected order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.forms.bounds import interval, number_or_bounds, plural
from clawtrace.assertions.forms.order import InTurn, Order, OrderAnswer, OrderedRows
from clawtrace.assertions.forms.sources import ATTEMPT, handed_over
from clawtrace.assertions.forms.where import TOOL_NAMES, Where
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.refused import refused
from clawtrace.assertions.trajectory.partial_order import PartialOrder, edit_words
from clawtrace.assertions.trajectory.score import ScoreBound, score
from clawtrace.assertions.trajectory.steps import (
    DescribedCall,
    ForbidBetween,
    OneOrMore,
    RequireCall,
    Step,
    named,
    text,
)
from clawtrace.assertions.trajectory.trajectory import SearchLimitError
from clawtrace.model.query import Resolve
from clawtrace.support.did_you_mean import did_you_mean
from clawtrace.support.figures import beside

__all__ = ["ToolSequence"]

_RULED = -1
"""Stands for no expectation: a rule alone is about the name."""


class ToolSequence(Assertion):
    """The tool calls are as expected: in this order, exactly this list, all of these, or in this partial order.

    An agent that writes before it has searched gets the right file for the wrong reason. `ordered` finds the names in this
    order with others between them; `strict` allows nothing else; `contains` ignores the order, and `[a, a]` needs two.
    `steps` say more than a list: any-order groups, optional and repeated parts. In `ordered` others may come between
    them, but a tool of an `optional` part, or of a `repeat` with `max`, is called only where the steps say.
    `forbid_between` and `require` are rules about every call of a step. Executed, failed and blocked calls count.
    Calls that ran side by side have no order: one order of all calls that respects "ended before started" must meet
    everything, unless `order: start_time` asks for the order of starts. The search is exact; where too many orders
    are possible the answer is unknown. `score` is content with a part of the list. A failure shows the smallest edit from the
    calls to what was expected.

    Example:
        - type: tool_sequence
          steps:
            - {tool: lookup_order, args: {id: 17}, status: ok}
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
    """A partial order in place of `expected`: names, calls as `tool_call` describes them (`{tool: …, args: …, status: …}`),
    `{any_order: […]}`, `{optional: …}`, `{repeat: …, min: 1, max: 3}`, and lists of them, which keep their order inside of
    a group."""
    mode: Literal["ordered", "strict", "contains"] = "ordered"
    """`ordered`: others may come between; `strict`: nothing else; `contains`: any order, others allowed."""
    order: Literal["interval", "start_time"] = "interval"
    """`interval`: calls that overlap have no order; `start_time`: the plain order of starts."""
    forbid_between: Annotated[tuple[ForbidBetween, ...], OneOrMore] = ()
    """Tools that are not called from any call of a step (`after`) to the next call of another (`before`); one or a list."""
    require: Annotated[tuple[RequireCall, ...], OneOrMore] = ()
    """A `tool` that is called `before`, or `after`, every call of a step; one or a list."""

    score: ScoreBound | None = None
    """`{metric: recall, min: 0.8}`: a part of `expected` is enough. The metric is `recall`, `precision` or `f1`; with `mode: contains`
    calls count in any order, else in that of their starts."""

    @model_validator(mode="after")
    def _check(self) -> ToolSequence:
        if (self.expected is None) == (self.steps is None):
            found = "none" if self.steps is None else "both"
            raise refused(f"takes exactly one of `expected` and `steps`; found {found}", "expected")
        if not self._steps and self.mode != "strict":
            raise refused(
                "an empty list checks nothing; with `mode: strict` it means that no tool is called", "expected"
            )
        by_time = self.order == "interval" and "order" in self.model_fields_set
        if self.score is not None and (self._is_partial or self.mode == "strict" or by_time):
            raise refused("is of a list of names, with `mode: ordered` or `contains` and by starts", "score")
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
        asked = [str(name) for step in self._steps for name in self._named(step)]
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
        return (
            self.expected if self.expected is not None else tuple(n for step in self._steps for n in self._named(step))
        )

    @staticmethod
    def _named(step: Step) -> list[Matcher]:
        """Return the names of the tools in a step."""
        return [call.tool if isinstance(call, DescribedCall) else call for call in named(step)]

    @property
    def _read(self) -> tuple[str, ...]:
        """What is looked at of a call, but for its name."""
        calls = [call for step in self._steps for call in named(step) if isinstance(call, DescribedCall)]
        arguments = ("arguments",) if any(call.args is not None for call in calls) else ()
        outcome = ("outcome",) if any(call.status is not None for call in calls) else ()
        return ("start_ns", "end_ns", *arguments, *outcome)

    @property
    def _resolved(self) -> Resolve:
        """Decide once per distinct name which expectations it meets, and whether a rule is about it."""
        names = tuple(dict.fromkeys(name for tool in self._listed for name in tool.names))

        def met(name: str) -> list[int]:
            return [i for i, tool in enumerate(self._listed) if tool(name)] or (
                [_RULED] if self._partial.concerns(name) else []
            )

        return Resolve("expected_tools", TOOL_NAMES, "name", met, names=names)

    def question(self) -> Order:
        """Read the attempts in order."""
        asked = "r.name IN (SELECT m.value FROM expected_tools AS m)"
        strict = self.mode == "strict"
        return Order(
            "tool_calls",
            self._answer,
            None if self.score is not None else self._in_turn,
            self._partial.nullable,
            columns=self._read,
            resolved=(self._resolved,),
            where=Where(
                "CASE WHEN r.name IS NULL OR r.start_ns IS NULL THEN NULL ELSE TRUE END",
                "TRUE" if strict else f"p.name IS NULL OR {asked.replace('r.', 'p.')}",
                ("name", *self._read),
            ),
            shown=ATTEMPT,
            first=f"CASE WHEN {asked} THEN {int(strict)} ELSE {int(not strict)} END",
        )

    @property
    def _in_turn(self) -> InTurn | None:
        """What SQL settles alone: distinct names in order.

        A call without length is taken as one nanosecond long, as by the search, and one that never ended as well.
        """
        names = {tool.literal for tool in self._listed if tool.literal is not None}
        by_time = self.mode == "ordered" and self.order == "interval" and not self._is_partial
        if not by_time or len(names) < len(self._listed):
            return None
        ends = "CASE WHEN c.end_ns > c.start_ns THEN c.end_ns ELSE c.start_ns + 1 END"
        return InTurn("expected_tools", len(self._listed), "c.start_ns", ends)

    def _answer(self, recorded: OrderedRows) -> OrderAnswer:
        """Search in every world that the spans allow."""
        if self.score is not None:
            found = score(self.score, self._listed, recorded, in_order=self.mode == "ordered")
            enough = self.score.min - 1e-9
            return OrderAnswer(
                True if found.low >= enough else False if found.high < enough else None, {"score": found}
            )
        try:
            holds = self._partial.answer(recorded.rows, recorded.gaps)
        except SearchLimitError:
            return OrderAnswer(None, {"given_up": True}, missing="tool_calls.start_ns")
        unknown = (column for column in ("name", *self._read) if any(one[column] is None for one in recorded.rows))
        missing = "" if recorded.gaps or not all(one["certain"] for one in recorded.rows) else next(unknown, "")
        return OrderAnswer(holds, {}, missing=f"tool_calls.{missing}" if missing else "")

    def expectation(self) -> Any:
        """Return the expected names; of a partial order everything that is asked."""
        if self.score is not None:
            return {"expected": [tool.text for tool in self._listed], "score": self.score.model_dump()}
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
        tools = self._called(outcome.row)
        if self.score is not None:
            low, high, *_ = outcome.row.get("score", (0.0, 0.0))
            return {"tools": tools, self.score.metric: number_or_bounds(low, high)}
        return {"tools": tools, "edits": self._edits(outcome.row)} if outcome.holds is False else tools

    def _called(self, row: Row) -> list[str | None] | None:
        if "rows" in row:
            return [one["name"] for one in row["rows"]]
        return None if row["high"] else []

    def _edits(self, row: Row) -> list[dict[str, Any]] | None:
        """Return the smallest edit script from the calls to what was expected; None where none is known."""
        return self._partial.edits(row.get("rows", ()))

    def explain(self, outcome: Outcome) -> str:
        """Return what was called against what was expected."""
        row = outcome.row
        names = " → ".join(map(text, self._steps)) or "no tool call"
        seen = interval(row["low"], row["high"], "tool call")
        if self.score is not None:
            return self._scored(row, names, seen)
        if row.get("given_up"):
            return f"Too many overlapping calls of the same tools among {seen} to decide whether {names} happened."
        if outcome.holds is None:
            return f"Whether {names} happened ({self.mode}) is open among {seen}{_unsure(row)}.{self._in_vain(row)}"
        if outcome.holds:
            how = {"ordered": "in this order", "strict": "and nothing else", "contains": "in any order"}[self.mode]
            ruled = ", within its rules" if self._has_rules else ""
            loose = "; the order is unknown, because calls ran concurrently" if self._undetermined(row) else ""
            return f"{names} happened {how}{ruled}, among {seen}{loose}."
        edits = self._edits(row)
        called = [str(name) for name in self._called(row) or ()]
        change = f" Smallest change: {edit_words(edits, called)}." if edits else ""
        return f"{self._failure(row, names, seen)}{change}{self._in_vain(row)}"

    def _scored(self, row: Row, names: str, seen: str) -> str:
        assert self.score is not None
        if "score" not in row:
            return f"None of {names} was called, expected a {self.score.metric} of at least {self.score.min:g}.{self._in_vain(row)}"
        found = row["score"]
        low, high = (beside(one, self.score.min) for one in (found.low, found.high))
        value = low if found.low == found.high else f"{low} to {high}"
        unsure = "" if found.low == found.high else _unsure(row)
        return (
            f"The {self.score.metric} of {names} is {value} ({found.met} of {found.expected} among {seen}{unsure}), "
            f"expected at least {self.score.min:g}.{self._in_vain(row)}"
        )

    def _undetermined(self, row: Row) -> bool:
        if self.order != "interval" or (self.mode == "contains" and not self._is_partial):
            return False
        return _overlapping(row["rows"]) if "rows" in row else bool(row.get("overlapping"))

    def _in_vain(self, row: Row) -> str:
        """Return, after a space, the expected tool that was requested and not run; empty if there is none."""
        wanted = [
            one for one in row.get("requests", ()) if one["name"] is not None and self._partial.concerns(one["name"])
        ]
        for one in sorted(wanted, key=lambda one: one["reason"] != "handed-over"):
            if one["reason"] == "handed-over":
                return handed_over(one["name"])
            return f" The model asked for `{one['name']}`, and no tool was run for that."
        return ""

    def _failure(self, row: Row, names: str, seen: str) -> str:
        tools = self._called(row) or []
        nameless = tools.count(None)
        if nameless and self.mode != "strict":
            return f"{names} did not happen, whichever tools {plural(nameless, 'call')} without a name called, among {seen}."
        if self._is_partial:
            how = {"ordered": "as described", "strict": "as the whole list", "contains": "all, within the rules"}
            return f"{names} did not happen {how[self.mode]}, among {seen}."
        if self.mode == "strict":
            for place, (tool, wanted) in enumerate(zip(tools, self._listed, strict=False), start=1):
                if row["low"] == row["high"] == len(self._listed) and (tool is None or not wanted(tool)):
                    return f"Call {place} of {row['high']} was `{tool}` where `{wanted}` was expected ({names})."
            were = "was" if len(self._listed) == 1 else "were"
            return f"{seen[0].upper()}{seen[1:]} where {len(self._listed)} {were} expected ({names})."
        if self.mode == "ordered":
            met = self._partial.met(row.get("rows", ()))
            after = f" after {' → '.join(f'`{tool}`' for tool in self._listed[:met])}" if met else ""
            missing = self._listed[met] if met < len(self._listed) else self._listed[-1]
            said = f"`{missing}` was not called{after}, among {seen}" if row["high"] else "No tool was called"
            return f"{said} (expected {names})."
        return f"Not all of {names} were called, among {seen}."


def _unsure(row: Row) -> str:
    """Return, after a semicolon, how many of the calls are uncertain."""
    rows = row.get("rows", ())
    counted = {
        "of {} it is unknown when, because clocks contradict each other": sum(one["start_ns"] is None for one in rows),
        "{} may not have been made": sum(not one["certain"] for one in rows),
        "of {} the name is unknown": sum(one["name"] is None for one in rows),
    }
    said = [words.format(plural(count, "call")) for words, count in counted.items() if count]
    said += ["more calls may be unrecorded"] if row.get("gaps") else []
    return f"; {'; '.join(said)}" if said else ""


def _overlapping(calls: Sequence[Row]) -> bool:
    """Return whether any call, by start, began before one that began earlier had ended."""
    latest = 0
    for call in calls:
        if call["start_ns"] is not None:
            if call["start_ns"] < latest:
                return True
            latest = max(latest, call["end_ns"] or 0, call["start_ns"] + 1)
    return False

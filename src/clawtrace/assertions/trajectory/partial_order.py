"""What a `tool_sequence` asks as a trajectory: which calls mean what, whether they meet it, and what would mend them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import Any

from clawtrace.assertions.base import Row
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.trajectory import call_pattern
from clawtrace.assertions.trajectory.steps import ForbidBetween, RequireCall, Step, Then, bounded, named, pattern
from clawtrace.assertions.trajectory.trajectory import (
    CallConstraint,
    Edit,
    Meaning,
    Placed,
    SearchLimitError,
    Trajectory,
)

__all__ = ["PartialOrder", "edit_words"]

_FOREVER = float("inf")
_COMPLETIONS = 64
"""How many ways to complete unknown names are tried; beyond it the answer stays unknown."""


class PartialOrder:
    """The steps and rules of one assertion over the names that they mention."""

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        strict: bool,
        any_order: bool = False,
        forbidden: Sequence[ForbidBetween] = (),
        required: Sequence[RequireCall] = (),
        by_start: bool = False,
    ) -> None:
        """Take the fields of the assertion; `any_order` lets the steps come in any order."""
        whole = Then.model_construct(root=tuple(steps)) if steps else None
        self._leaves = list(named(whole)) if whole else []
        rules: list[ForbidBetween | RequireCall] = [*forbidden, *required]
        mentioned = [*self._leaves, *(name for rule in rules for name in _names(rule))]
        self._matchers = list({_key(name): name for name in mentioned}.values())
        self._number = {_key(name): number for number, name in enumerate(self._matchers)}
        self._parts = [pattern(step, self._item) for step in steps]
        self.pattern = (call_pattern.any_order if any_order else call_pattern.sequence)(self._parts)
        self._required = required
        self.trajectory = Trajectory(
            self.pattern,
            tuple(map(self._rule, rules)),
            strict,
            frozenset(map(self._item, bounded(whole))) if whole else frozenset(),
        )
        self._by_start = by_start
        self._bag = any_order and not rules
        self._known: dict[str, Meaning] = {}

    def _item(self, name: Matcher) -> int:
        return self._number[_key(name)]

    def _items(self, *names: Matcher | None) -> Meaning:
        return frozenset(self._item(name) for name in names if name is not None)

    def _rule(self, rule: ForbidBetween | RequireCall) -> CallConstraint:
        if isinstance(rule, RequireCall):
            kind, anchor = ("before", rule.before) if rule.before is not None else ("after", rule.after)
            return CallConstraint(
                "before" if kind == "before" else "after", self._items(rule.tool), closes=self._items(anchor)
            )
        opens = None if rule.after is None else self._items(rule.after)
        closes = None if rule.before is None else self._items(rule.before)
        return CallConstraint("between", self._items(*rule.tools), opens, closes)

    # What is asked ----------------------------------------------------------------------------

    @property
    def growing(self) -> bool:
        """Whether more calls can only help."""
        return self.trajectory.growing

    @property
    def one_each(self) -> bool:
        """Whether no name is needed twice: then two calls that turn out to be one change nothing."""
        once = all(call_pattern.least(self.pattern, number.__eq__) <= 1 for number in range(len(self._matchers)))
        return once and (self._literal or len(self._leaves) == 1)

    @property
    def _literal(self) -> bool:
        return all(name.literal is not None for name in self._matchers)

    @property
    def nullable(self) -> bool:
        """Whether a run without any call meets the steps."""
        return call_pattern.is_over(self.pattern)

    def too_many(self, details: Sequence[Row]) -> bool | None:
        """Return whether there are more calls than the steps can take, and always will be; None where there are not."""
        strict, called = self.trajectory.strict, Counter(row["tool"] for row in details if row["tool"] is not None)
        counted: list[tuple[int, int, Callable[[int], bool]]] = []
        if strict and details:
            counted.append((len(details), details[0]["apart"] or 0, lambda _: True))
        apart = {row["tool"]: row["apart_of_name"] or 0 for row in details}
        for name, calls in called.items():
            meaning = self._meaning(name)
            if meaning & self.trajectory.bounded or (strict and meaning):
                counted.append((calls, apart[name], meaning.__contains__))
        found = None
        for calls, staying, fits in counted:
            room = call_pattern.capacity(self.pattern, fits)
            if calls > room:
                found = found or not room or not details[0]["still_open"] or staying > room
        return found

    # Answers ----------------------------------------------------------------------------------

    def answer(self, details: Sequence[Row]) -> bool | None:
        """Return whether the calls meet everything; None where unknown names or times decide.

        Raises:
            SearchLimitError: too many orders are possible.
        """
        if self._surely(details):
            return True
        if not any(None in (row["tool"], row["start_ns"], row["end_ns"]) for row in details):
            return False
        return None if self._holds([self._hopeful(detail, number) for number, detail in enumerate(details)]) else False

    def _holds(self, calls: Sequence[Placed]) -> bool:
        """Search; a bag is a list of calls that all ran side by side."""
        if not self._bag:
            return self.trajectory.holds(calls)
        side_by_side = [call._replace(start=0, end=1) for call in calls]
        return Trajectory(call_pattern.sequence(self._parts)).holds(side_by_side)

    def met(self, details: Sequence[Row], at_least: int) -> int:
        """Return how many steps, from the first, are surely met in order, where it is known of `at_least`."""
        calls = self._known_calls(details)
        try:
            while at_least < len(self._parts):
                if not Trajectory(call_pattern.sequence(self._parts[: at_least + 1])).holds(calls):
                    break
                at_least += 1
        except SearchLimitError:
            pass  # the answer did not need that search: what is known is said
        return at_least

    def _known_calls(self, details: Sequence[Row]) -> list[Placed]:
        return [
            self._placed(number, row, (self._meaning(row["tool"]),))
            for number, row in enumerate(details)
            if row["tool"] is not None and (self._bag or row["start_ns"] is not None)
        ]

    def _surely(self, details: Sequence[Row]) -> bool:
        """Return whether the calls meet everything however the unknown turns out."""
        if self.growing:
            return self._holds(self._known_calls(details))
        if any(row["start_ns"] is None for row in details):
            return False
        open_ones = [[self._meaning(row["tool"])] if row["tool"] is not None else self._guesses for row in details]
        unknown = any(row["tool"] is None for row in details)
        if (unknown and not self._literal) or prod(map(len, open_ones)) > _COMPLETIONS:
            return False
        return all(
            self.trajectory.holds(
                [
                    self._placed(number, row, (one,))
                    for (number, row), one in zip(enumerate(details), guess, strict=True)
                ]
            )
            for guess in product(*open_ones)
        )

    def _hopeful(self, detail: Row, number: int) -> Placed:
        """Return a call as if everything unknown about it were as wanted."""
        meanings = (self._meaning(detail["tool"]),) if detail["tool"] is not None else tuple(self._guesses)
        return self._placed(number, detail, meanings, hopeful=True)

    def _placed(self, number: int, row: Row, meanings: tuple[Meaning, ...], *, hopeful: bool = False) -> Placed:
        start, end = row["start_ns"], row["end_ns"]
        if start is None:
            return Placed(number + 1, meanings, -_FOREVER, _FOREVER)
        if self._by_start:
            return Placed(number + 1, meanings, number, number + 1)
        ends = _FOREVER if end is None and hopeful else max(end or 0, start + 1)
        return Placed(number + 1, meanings, start, ends)

    def _meaning(self, name: str) -> Meaning:
        """Return what a call of this name means."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = frozenset(i for i, matcher in enumerate(self._matchers) if matcher(name))
        return found

    @cached_property
    def _guesses(self) -> list[Meaning]:
        """What a call without a name may mean: one of the names, or none; patterns may mean several at once."""
        if self._literal:
            return [*self.insertable, frozenset()]
        helpful = [self._item(rule.tool) for rule in self._required]
        extras = [frozenset(some) for n in range(len(helpful) + 1) for some in combinations(helpful, n)]
        leaves: list[Meaning] = [frozenset(), *(self._items(leaf) for leaf in self._leaves)]
        return list(dict.fromkeys(leaf | extra for leaf in leaves for extra in extras))

    # Edits ------------------------------------------------------------------------------------

    @cached_property
    def insertable(self) -> list[Meaning]:
        """What a call of each name means."""
        return list(dict.fromkeys(self._meant(name) for name in self._matchers))

    def _meant(self, name: Matcher) -> Meaning:
        return self._meaning(name.literal) if name.literal is not None else self._items(name)

    def edits(self, details: Sequence[Row]) -> list[dict[str, Any]] | None:
        """Return the smallest edit script as JSON; None where names or starts are unknown, or it was not found."""
        if any(row["tool"] is None or row["start_ns"] is None for row in details):
            return None
        calls = [self._placed(number, row, (self._meaning(row["tool"]),)) for number, row in enumerate(details)]
        found = self.trajectory.edits(calls, self.insertable)
        return None if found is None else [self._shown(edit, details) for edit in found]

    def _shown(self, edit: Edit, details: Sequence[Row]) -> dict[str, Any]:
        if edit.number is None:
            name = next((str(one) for one in self._matchers if self._meant(one) == edit.meaning), "")
            known = next((row["tool"] for row in details if self._meaning(row["tool"]) == edit.meaning), "")
            return {"op": edit.op, "tool": name or known, "after": edit.after}
        shown = {"op": edit.op, "call": edit.number, "tool": details[edit.number - 1]["tool"]}
        return shown if edit.after is None else shown | {"after": edit.after}


def _key(name: Matcher) -> str:
    """Return what makes two matchers one: `literal:a` is `a`."""
    return f"literal:{name.literal}" if name.literal is not None else name.text


def _names(rule: ForbidBetween | RequireCall) -> list[Matcher]:
    tools = rule.tools if isinstance(rule, ForbidBetween) else (rule.tool,)
    return [name for name in (*tools, rule.after, rule.before) if name is not None]


def edit_words(edits: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """Return an edit script in words; `names` are those of the calls."""
    return "; ".join(_edit_words(edit, names) for edit in edits)


def _edit_words(edit: dict[str, Any], names: Sequence[str]) -> str:
    what = f"`{edit['tool']}`" if edit["op"] == "insert" else f"call {edit['call']} `{edit['tool']}`"
    after = edit.get("after")
    if after is None or not names:
        return f"{edit['op']} {what}"
    to = "to" if edit["op"] == "move" else "at"
    if after == len(names):
        return f"{edit['op']} {what} {to} the end"
    where = f"{to} the beginning" if after == 0 else f"after call {after} `{names[after - 1]}`"
    return f"{edit['op']} {what} {where}"

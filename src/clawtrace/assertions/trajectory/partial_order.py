"""A `tool_sequence` as a trajectory: what each call may stand for, whether the calls meet it, and the smallest change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

from clawtrace.assertions.forms.form import Row
from clawtrace.assertions.forms.order import worlds
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.trajectory import call_pattern
from clawtrace.assertions.trajectory.call_pattern import CallConstraint, Meaning
from clawtrace.assertions.trajectory.steps import (
    Call,
    DescribedCall,
    ForbidBetween,
    RequireCall,
    Step,
    Then,
    bounded,
    named,
    pattern,
)
from clawtrace.assertions.trajectory.trajectory import Edit, Placed, SearchLimitError, Trajectory

__all__ = ["PartialOrder", "edit_words"]

_FOREVER = float("inf")
_ALWAYS = (-_FOREVER, _FOREVER)
_UNSEEN = 8
"""How many calls that nothing records are told from any number of them."""
_PATTERNS = 6
"""How many patterns may be asked for where a name is unknown: it may meet any of them at once."""


class PartialOrder:
    """The steps and rules of one assertion over the names that they mention."""

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        strict: bool = False,
        any_order: bool = False,
        forbidden: Sequence[ForbidBetween] = (),
        required: Sequence[RequireCall] = (),
        by_start: bool = False,
    ) -> None:
        """Store the fields of the assertion; `any_order` lets the steps come in any order."""
        whole = Then.model_construct(root=tuple(steps)) if steps else None
        self._leaves = list(named(whole)) if whole else []
        rules: list[ForbidBetween | RequireCall] = [*forbidden, *required]
        mentioned = [*self._leaves, *(name for rule in rules for name in _names(rule))]
        self._calls = list({_key(call): call for call in mentioned}.values())
        self._number = {_key(call): number for number, call in enumerate(self._calls)}
        self._described = {n: call for n, call in enumerate(self._calls) if isinstance(call, DescribedCall)}
        self._parts = [pattern(step, self._item) for step in steps]
        self.pattern = (call_pattern.any_order if any_order else call_pattern.sequence)(self._parts)
        self.trajectory = Trajectory(
            self.pattern,
            tuple(map(self._rule, rules)),
            strict,
            frozenset(map(self._item, bounded(whole))) if whole else frozenset(),
        )
        self._by_start = by_start
        self._bag = any_order and not rules
        self._known: dict[str, Meaning] = {}
        self._edited: tuple[Sequence[Row], list[dict[str, Any]] | None] | None = None

    def _item(self, call: Call) -> int:
        return self._number[_key(call)]

    def _items(self, *names: Matcher | None) -> Meaning:
        return frozenset(self._item(name) for name in names if name is not None)

    def _rule(self, rule: ForbidBetween | RequireCall) -> CallConstraint:
        if isinstance(rule, RequireCall):
            kind: Literal["before", "after"] = "after" if rule.before is None else "before"
            return CallConstraint(kind, self._items(rule.tool), closes=self._items(rule.before, rule.after))
        opens = None if rule.after is None else self._items(rule.after)
        closes = None if rule.before is None else self._items(rule.before)
        return CallConstraint("between", self._items(*rule.tools), opens, closes)

    # What is asked ----------------------------------------------------------------------------

    @property
    def nullable(self) -> bool:
        """Whether a run without any call meets the steps."""
        return call_pattern.is_over(self.pattern)

    def concerns(self, name: str) -> bool:
        """Return whether a step or a rule is about tools of this name."""
        return bool(self._meaning(name))

    # Answers ----------------------------------------------------------------------------------

    def answer(self, rows: Sequence[Row], gaps: Sequence[Row]) -> bool | None:
        """Return whether the calls meet everything in every world; None where they do so in some.

        Raises:
            SearchLimitError: too many orders are possible.
        """
        gaps = [gap for gap in gaps if self._matters(gap)]
        if self._surely(rows, gaps):
            return True
        known = (row["certain"] and None not in (row["name"], row["start_ns"], _end(row)) for row in rows)
        if not gaps and all(known) and all(len(self._meanings(row)) == 1 for row in rows):
            return False
        return None if self._possibly(rows, gaps) else False

    def _matters(self, row: Row) -> bool:
        """Return whether a row could be asked about: another tool between the steps changes nothing."""
        return self.trajectory.strict or row["name"] is None or bool(self._meaning(row["name"]))

    def _surely(self, rows: Sequence[Row], gaps: Sequence[Row]) -> bool:
        """Return whether the calls meet everything in every world.

        Where more calls can only help, the worlds without anything that is not certain are the worst ones.
        """
        if not self.trajectory.growing:
            some = self._worlds([row for row in enumerate(rows) if self._matters(row[1])], gaps)
            return some is not None and all(map(self._holds, some))
        if self._holds([call for call, row in self._known_calls(rows) if row["certain"]]):
            return True
        certain = [(number, row) for number, row in enumerate(rows) if row["certain"] and self._matters(row)]
        if all(None not in (row["name"], row["start_ns"]) for _, row in certain):
            return False
        some = self._worlds(certain, ())
        return some is not None and all(map(self._holds, some))

    def _worlds(self, rows: Sequence[tuple[int, Row]], gaps: Sequence[Row]) -> Iterator[list[Placed]] | None:
        """Return the calls of each world; None where there are too many.

        A call of unknown start, and one that nothing records, is tried between all the others: before, after and within each.
        """
        if any(gap["at_most"] is None or gap["at_most"] > _UNSEEN for gap in gaps):
            return None
        timed = [self._placed(number, row, ()) for number, row in rows if row["start_ns"] is not None]
        lost = [row for gap in gaps for row in [gap] * gap["at_most"]]
        free = [(row, _ALWAYS) for _, row in rows if row["start_ns"] is None] + [(gap, self._span(gap)) for gap in lost]
        width, instants = max(len(free), 1), sorted({at for call in timed for at in (call.start, call.end)})
        rank = {at: width * place for place, at in enumerate(instants, 1)}
        known = [row for _, row in rows if row["start_ns"] is not None]
        places: list[list[tuple[float, float]]] = [[(rank[call.start], rank[call.end])] for call in timed]
        places += [self._slots(instants, width, *span) for _, span in free]
        choices: list[list[Placed | None]] = []
        for row, where in zip([*known, *(row for row, _ in free)], places, strict=True):
            calls = [Placed(0, (meaning,), *at) for meaning in self._meanings(row) for at in where]
            choices.append([*calls, *(() if row["certain"] else (None,))])
        some = worlds(choices)
        return None if some is None else ([call for call in world if call is not None] for world in some)

    def _slots(self, instants: Sequence[float], width: int, first: float, last: float) -> list[tuple[float, float]]:
        """Return the places between instants within a span of time, `width` between two of them; of a bag one will do."""
        cells = [
            place
            for place in range(len(instants) + 1)
            if (place == len(instants) or instants[place] > first) and (place == 0 or instants[place - 1] < last)
        ]
        slots: list[tuple[float, float]] = [
            (cell * width + part, cell * width + part + 1) for cell in cells for part in range(width)
        ]
        return slots[:1] if self._bag else slots

    def _span(self, gap: Row) -> tuple[float, float]:
        """Return when calls that nothing records can have been."""
        if self._by_start:
            return _ALWAYS
        start, end = gap["start_ns"], gap["end_ns"]
        first = -_FOREVER if start is None else start
        return first, _FOREVER if end is None else max(end, first + 1)

    def _possibly(self, rows: Sequence[Row], gaps: Sequence[Row]) -> bool:
        """Return whether the calls meet everything in some world."""
        calls = [self._placed(number, row, self._meanings(row), hopeful=True) for number, row in enumerate(rows)]
        unseen = set[Meaning]()
        for gap in gaps:
            meanings = self._meanings(gap)
            if gap["at_most"] is None or gap["at_most"] > _UNSEEN:
                unseen.update(meanings)
            else:
                calls += [Placed(0, meanings, *self._span(gap), optional=True)] * gap["at_most"]
        return self._holds(calls, unseen)

    def _holds(self, calls: Sequence[Placed], unseen: Collection[Meaning] = ()) -> bool:
        """Search; a bag is a list of calls that all ran side by side."""
        if not self._bag:
            return self.trajectory.holds(calls, unseen)
        side_by_side = [call._replace(start=0, end=1) for call in calls]
        return Trajectory(call_pattern.sequence(self._parts)).holds(side_by_side, unseen)

    def met(self, rows: Sequence[Row]) -> int:
        """Return how many steps, from the first, are met in order by the calls whose name is known."""
        calls, met = [call for call, _ in self._known_calls(rows)], 0
        try:
            while met < len(self._parts):
                if not Trajectory(call_pattern.sequence(self._parts[: met + 1])).holds(calls):
                    break
                met += 1
        except SearchLimitError:
            pass  # the answer did not need that search: what is known is said
        return met

    def _known_calls(self, rows: Sequence[Row]) -> list[tuple[Placed, Row]]:
        return [
            (self._placed(number, row, self._meanings(row)[:1]), row)
            for number, row in enumerate(rows)
            if row["name"] is not None and (self._bag or row["start_ns"] is not None)
        ]

    def _placed(self, number: int, row: Row, meanings: tuple[Meaning, ...], *, hopeful: bool = False) -> Placed:
        """Return a call; a hopeful one as if everything unknown about it were as wanted."""
        start, end, optional = row["start_ns"], _end(row), hopeful and not row["certain"]
        if start is None:
            return Placed(number + 1, meanings, -_FOREVER, _FOREVER, optional)
        # a call that only messages show began some time after them
        if self._by_start and not (hopeful and end is None):
            return Placed(number + 1, meanings, start, start + 1, optional)
        ends = _FOREVER if end is None and hopeful else max(end or 0, start + 1)
        return Placed(number + 1, meanings, start, ends, optional)

    def _meanings(self, row: Row) -> tuple[Meaning, ...]:
        """Return what a call may mean, the least first: several where its name, or what a step describes, is unknown."""
        named = (self._meaning(row["name"]),) if row["name"] is not None else self._guesses
        if not self._described:
            return named
        return tuple(dict.fromkeys(found for meaning in named for found in self._as_described(meaning, row)))

    def _as_described(self, meaning: Meaning, row: Row) -> Iterator[Meaning]:
        """Yield what a call may mean, of all that its name may mean."""
        fits = {item: self._described[item].fits(row) for item in sorted(meaning & self._described.keys())}
        sure = meaning - {item for item, answer in fits.items() if answer is not True}
        unsure = [item for item, answer in fits.items() if answer is None]
        if len(unsure) > _PATTERNS:
            raise SearchLimitError
        for n in range(len(unsure) + 1):
            yield from (sure.union(chosen) for chosen in combinations(unsure, n))

    def _meaning(self, name: str) -> Meaning:
        """Return all that a call of this name may mean."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = frozenset(i for i, call in enumerate(self._calls) if _tool(call)(name))
        return found

    @cached_property
    def _guesses(self) -> tuple[Meaning, ...]:
        """What a call without a name may stand for: a plain name, or any patterns at once, or none."""
        patterns = [number for number, call in enumerate(self._calls) if _tool(call).literal is None]
        if len(patterns) > _PATTERNS:
            raise SearchLimitError
        some = [frozenset(chosen) for n in range(len(patterns) + 1) for chosen in combinations(patterns, n)]
        plain = [self._meaning(name) for call in self._calls for name in _tool(call).names]
        return tuple(dict.fromkeys([*plain, *some]))

    # Edits ------------------------------------------------------------------------------------

    @cached_property
    def insertable(self) -> list[Meaning]:
        """The meaning of each expected call."""
        return list(dict.fromkeys(map(self._meant, self._calls)))

    def _meant(self, call: Call) -> Meaning:
        """Return what a call means that is as expected, and as no other step describes it."""
        literal, item = _tool(call).literal, frozenset((self._item(call),))
        return item if literal is None else item | (self._meaning(literal) - self._described.keys())

    def edits(self, rows: Sequence[Row]) -> list[dict[str, Any]] | None:
        """Return the smallest edit script as JSON; None where what a call means is unknown, or it was not found."""
        if self._edited is None or self._edited[0] is not rows:  # a verdict says it twice, and it may take seconds
            self._edited = rows, self._edits(rows)
        return self._edited[1]

    def _edits(self, rows: Sequence[Row]) -> list[dict[str, Any]] | None:
        if any(row["name"] is None or row["start_ns"] is None or len(self._meanings(row)) > 1 for row in rows):
            return None
        calls = [self._placed(number, row, self._meanings(row)) for number, row in enumerate(rows)]
        found = self.trajectory.edits(calls, self.insertable)
        return None if found is None else [self._shown(edit, rows) for edit in found]

    def _shown(self, edit: Edit, rows: Sequence[Row]) -> dict[str, Any]:
        if edit.number is None:
            name = next((str(one) for one in self._calls if self._meant(one) == edit.meaning), "")
            known = next((row["name"] for row in rows if self._meanings(row) == (edit.meaning,)), "")
            return {"op": edit.op, "tool": name or known, "after": edit.after}
        shown = {"op": edit.op, "call": edit.number, "tool": rows[edit.number - 1]["name"]}
        return shown if edit.after is None else shown | {"after": edit.after}


def _end(row: Row) -> int | None:
    """Return when a row ended; what comes in the order of starts alone has no end."""
    found: int | None = row.get("end_ns", row["start_ns"])
    return found


def _tool(call: Call) -> Matcher:
    return call.tool if isinstance(call, DescribedCall) else call


def _key(call: Call) -> str:
    """Return what makes two expectations one: `literal:a` is `a`."""
    if isinstance(call, DescribedCall):
        return call.model_dump_json()
    return f"literal:{call.literal}" if call.literal is not None else call.text


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

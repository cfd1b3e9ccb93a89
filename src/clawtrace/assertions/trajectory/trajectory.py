"""Whether calls that may overlap meet a pattern and its rules, and the smallest edit that would make them: exact search.

A trajectory holds when one order of the calls that respects "ended before started" meets everything that is asked:
the pattern takes its calls in turn, every call that it does not take may be passed over, and no rule is broken. A call
without length is taken as one nanosecond long, so that calls of the same clock tick are concurrent and not, absurdly, each
before the other. Among calls that may come next and mean the same, the one that ends first is as good as any: it is the one
that holds the others back. Where only the calls that are taken matter, the search goes from one of them to the next.
A call that is not certain may be left out, and calls that nothing records may come anywhere: so one search finds whether
the trajectory holds in any world that the spans allow.
The edit script is the same search where calls may also be inserted, deleted and moved at the price of one each; its price is
0 exactly where the trajectory holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Literal, NamedTuple

from clawtrace.assertions.trajectory.call_pattern import (
    CallConstraint,
    Meaning,
    Sequenced,
    Term,
    is_over,
    items,
    least,
    openings,
)

__all__ = ["EDIT_LIMIT", "STEP_LIMIT", "Edit", "Placed", "SearchLimitError", "Trajectory"]

STEP_LIMIT = 200_000
"""The most states of one search; beyond it the answer is reported as unknown."""

EDIT_LIMIT = 20_000
"""How many states the search for an edit script may visit; beyond it a simpler search finds one, if it can.

Each looks at all calls that overlap, so that of more calls than `_EDITED_CALLS` fewer states are visited.
"""
_EDITED_CALLS = 500


class SearchLimitError(Exception):
    """The search visited `STEP_LIMIT` states without an answer."""


class Placed(NamedTuple):
    """One call as the search sees it."""

    number: int
    """1-based place among the calls by start, for edits."""
    meanings: tuple[Meaning, ...]
    """What it may mean: one, or several where its name is unknown."""
    start: float
    end: float
    """After `start`."""
    optional: bool = False
    """Whether it may be left out, as one that is not certain."""


class Edit(NamedTuple):
    """One step from what was called to what was expected."""

    op: Literal["insert", "delete", "move"]
    meaning: Meaning
    """What is inserted; of a deleted or moved call what it means."""
    number: int | None
    """The call that is deleted or moved; None for an inserted one."""
    after: int | None
    """The call after which an inserted or moved one comes: 0 for the beginning, None for a deleted one."""


class _State(NamedTuple):
    used: int
    """Bit mask of the calls that were dealt with."""
    left: Term
    rules: tuple[int, ...]
    balance: tuple[tuple[int, int], ...] = ()
    """Deleted (positive) and inserted (negative) calls that are not yet one move, by meaning."""


class _ReachedState(NamedTuple):
    """How a state was reached."""

    before: _State | None
    edit: Edit | None
    last: int
    """The call that was kept last."""
    passed: int = 0
    """The call that was passed over, where one was: 0 for none."""


@dataclass(frozen=True)
class Trajectory:
    """What is asked of the calls."""

    pattern: Term
    rules: tuple[CallConstraint, ...] = ()
    strict: bool = False
    """Whether the pattern takes every call."""
    bounded: Meaning = frozenset()
    """Expectations whose calls may not be passed over: they come only where the pattern says."""

    @property
    def growing(self) -> bool:
        """Whether more calls can only help: all that the pattern does not take may be passed over."""
        return not (self.strict or self.bounded or self.rules)

    def holds(self, calls: Sequence[Placed], unseen: Collection[Meaning] = ()) -> bool:
        """Return whether one order of the calls meets everything.

        Args:
            calls: what was called.
            unseen: what any number of further calls may mean, that come anywhere.

        Raises:
            SearchLimitError: too many orders are possible.
        """
        calls, unseen = self._relevant(calls), frozenset(filter(None, unseen))
        if not self._enough(calls, unseen):
            return False
        following = _Taken(calls, unseen).following if self.growing else partial(self._following, calls, unseen)
        seen, waiting = set[_State](), [_State(0, self.pattern, tuple(rule.first() for rule in self.rules))]
        while waiting:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            if len(seen) > STEP_LIMIT:
                raise SearchLimitError
            if (self.growing or state.used.bit_count() == len(calls)) and self._may_end(state):
                return True
            waiting.extend(following(state))
        return False

    def _enough(self, calls: Sequence[Placed], unseen: Collection[Meaning]) -> bool:
        """Return whether no expectation has fewer calls than it needs, in any order."""
        counted = Counter(call.meanings for call in calls)
        if self.strict and not unseen and len(calls) < least(self.pattern, lambda _: True):
            return False
        return all(
            any(item in meaning for meaning in unseen)
            or sum(n for meanings, n in counted.items() if any(item in meaning for meaning in meanings))
            >= least(self.pattern, item.__eq__)
            for item in items(self.pattern)
        )

    def _following(self, calls: Sequence[Placed], unseen: Collection[Meaning], state: _State) -> Iterator[_State]:
        """Yield the states after one more call, where every certain call has to be placed."""
        for meaning in unseen:
            for _, left, rules in self._after(state, meaning):
                yield _State(state.used, left, rules)
        for place in _next(calls, state.used):
            used = state.used | 1 << place
            if calls[place].optional:
                yield state._replace(used=used)
            for meaning in calls[place].meanings:
                for _, left, rules in self._after(state, meaning):
                    yield _State(used, left, rules)

    def _relevant(self, calls: Sequence[Placed]) -> list[Placed]:
        """Return the calls by start, without those that mean nothing where such are free to come."""
        kept = [call for call in calls if self.strict or any(call.meanings)]
        return sorted(kept, key=lambda call: (call.start, call.end, call.number))

    def _may_end(self, state: _State) -> bool:
        return is_over(state.left) and all(
            rule.may_end(seen) for rule, seen in zip(self.rules, state.rules, strict=True)
        )

    def _after(self, state: _State, meaning: Meaning) -> Iterator[tuple[bool, Term, tuple[int, ...]]]:
        """Yield whether the pattern takes a call (False: it is passed over), what is left then, and the rules' states."""
        stepped = [rule.step(seen, meaning) for rule, seen in zip(self.rules, state.rules, strict=True)]
        rules = tuple(one for one in stepped if one is not None)
        if len(rules) < len(stepped):
            return
        if not self.strict and not meaning & self.bounded:
            yield False, state.left, rules
        for item, left in openings(state.left):
            if item in meaning:
                yield True, left, rules

    # Edits ------------------------------------------------------------------------------------

    def edits(self, calls: Sequence[Placed], insertable: Sequence[Meaning]) -> tuple[Edit, ...] | None:
        """Return the fewest edits after which the calls meet everything; None where the search was given up.

        Args:
            calls: what was called, each with one meaning.
            insertable: what may be inserted: the meaning of each name that is expected or named by a rule.
        """
        calls = self._relevant(calls)
        called = [call.meanings[0] for call in calls if any(call.meanings)]
        meanings = list(dict.fromkeys([*insertable, *called]))
        for pairing in (False,) if self._plain else (True, False):
            found = self._cheapest(calls, meanings, pairing=pairing)
            if found is not None:
                return self._with_moves(found, calls)
        return None

    @property
    def _plain(self) -> bool:
        """Whether the number of deletions and insertions alone says what is cheapest: a fixed list, and no rules.

        Of a fixed list the moves are then the names on both sides, however the calls that stay are chosen.
        """
        parts = self.pattern.parts if isinstance(self.pattern, Sequenced) else (self.pattern,)
        return not self.rules and not self.bounded and all(isinstance(part, int) for part in parts)

    def _cheapest(
        self, calls: Sequence[Placed], meanings: list[Meaning], *, pairing: bool
    ) -> list[_ReachedState] | None:
        """Return the cheapest way, step by step; `pairing` counts a deletion and an insertion of one meaning once."""
        first = _State(0, self.pattern, tuple(rule.first() for rule in self.rules))
        ties = count(0, -1)  # the newest first: of ways of one price the one that is furthest
        reached: dict[_State, _ReachedState] = {}
        waiting = [(0, next(ties), first, _ReachedState(None, None, 0))]
        while waiting:
            price, _, state, step = heappop(waiting)
            if state in reached:
                continue
            reached[state] = step
            if len(reached) * max(len(calls), _EDITED_CALLS) > EDIT_LIMIT * _EDITED_CALLS:
                return None
            if state.used.bit_count() == len(calls) and self._may_end(state):
                return _way(reached, state)
            for more, after, how in self._edited(calls, state, step.last, meanings, pairing):
                if after not in reached:
                    heappush(waiting, (price + more, next(ties), after, how))
        return None

    def _edited(
        self, calls: Sequence[Placed], state: _State, last: int, meanings: list[Meaning], pairing: bool
    ) -> Iterator[tuple[int, _State, _ReachedState]]:
        """Yield what may be done in a state: its price, the state after it, and how it was done."""
        for number, meaning in enumerate(meanings):
            price, balance = _balanced(state.balance, number, -1) if pairing else (1, ())
            for _, left, rules in self._after(state, meaning):
                if (left, rules) != (state.left, state.rules):  # a call that changes nothing need not be there
                    inserted = Edit("insert", meaning, None, last)
                    yield price, _State(state.used, left, rules, balance), _ReachedState(state, inserted, last)
        for place in _next(calls, state.used):
            call, used = calls[place], state.used | 1 << place
            meaning = call.meanings[0]
            price, balance = (1, state.balance)
            if pairing and meaning:
                price, balance = _balanced(state.balance, meanings.index(meaning), 1)
            deleted = Edit("delete", meaning, call.number, None)
            yield price, _State(used, state.left, state.rules, balance), _ReachedState(state, deleted, last)
            for taken, left, rules in self._after(state, meaning):
                step = _ReachedState(state, None, call.number, 0 if taken else call.number)
                yield 0, _State(used, left, rules, state.balance), step

    def _with_moves(self, way: Sequence[_ReachedState], calls: Sequence[Placed]) -> tuple[Edit, ...]:
        """Return the edits of a way, a deletion and an insertion of one meaning as one move.

        A call that was passed over may be moved as well, where no rule asks for it.
        """
        ruled = {name for rule in self.rules for names in (rule.tool, rule.opens, rule.closes) for name in names or ()}
        edits = [step.edit for step in way if step.edit is not None]
        passed = {step.passed for step in way}
        spare = [(edit.meaning, edit.number) for edit in edits if edit.op == "delete"]
        spare += [
            (call.meanings[0], call.number) for call in calls if call.number in passed and not call.meanings[0] & ruled
        ]
        found = []
        for edit in edits:
            match = next((one for one in spare if one[0] == edit.meaning), None) if edit.op == "insert" else None
            if match is not None:
                spare.remove(match)
                edit = edit._replace(op="move", number=match[1])
            found.append(edit)
        moved = {edit.number for edit in found if edit.op == "move"}
        return tuple(edit for edit in found if edit.op != "delete" or edit.number not in moved)


class _Taken:
    """The search for the calls that a pattern takes, where all others may be passed over.

    In its states `used` are the calls that were taken or can no longer be, as far as what is left asks for such.
    """

    def __init__(self, calls: Sequence[Placed], unseen: Collection[Meaning]) -> None:
        self._calls = calls
        self._unseen = frozenset[int]().union(*unseen)
        places: dict[tuple[Meaning, ...], list[int]] = {}
        for place, call in enumerate(calls):
            places.setdefault(call.meanings, []).append(place)
        self._alike = [(frozenset().union(*meanings), _mask(some)) for meanings, some in places.items()]
        self._ended: dict[int, int] = {}
        self._useful: dict[frozenset[int], int] = {}

    def following(self, state: _State) -> Iterator[_State]:
        """Yield the states after one more call that is taken, the most promising last."""
        for item, left in openings(state.left):
            useful = self._asked_for(items(left))
            if item in self._unseen:
                yield _State(state.used & useful, left, state.rules)
            for meant, mask in self._alike:
                if item in meant:
                    for used in self._choices(mask, state.used):
                        yield _State(used & useful, left, state.rules)

    def _choices(self, alike: int, used: int) -> list[int]:
        """Return what is used after each choice among calls that mean the same.

        A call that starts and ends no earlier than another leaves no more open than that one.
        """
        found: list[int] = []
        before, earliest_end = -1, float("inf")
        rest = alike & ~used
        while rest:
            lowest = rest & -rest
            rest ^= lowest
            place = lowest.bit_length() - 1
            call = self._calls[place]
            if call.start >= earliest_end:
                break
            if not found or call.end < earliest_end:
                earliest_end = call.end
                passed = used | self._ended_before(place)
                if passed == before:  # it starts no later as far as anything is open
                    found.pop()
                found.append(passed | lowest)
                before = passed
        return found[::-1]

    def _ended_before(self, place: int) -> int:
        """Return the calls that ended before this one started."""
        found = self._ended.get(place)
        if found is None:
            start = self._calls[place].start
            found = self._ended[place] = _mask(n for n in range(place) if self._calls[n].end <= start)
        return found

    def _asked_for(self, wanted: frozenset[int]) -> int:
        """Return the calls that meet any of these expectations."""
        found = self._useful.get(wanted)
        if found is None:
            found = self._useful[wanted] = sum(mask for meant, mask in self._alike if meant & wanted)
        return found


def _mask(places: Iterable[int]) -> int:
    return sum(1 << place for place in places)


def _next(calls: Sequence[Placed], used: int) -> list[int]:
    """Return, for each meaning, the call that may come next and ends first; `calls` are by start."""
    choice: dict[tuple[tuple[Meaning, ...], bool], int] = {}
    earliest_end = float("inf")
    place = (~used & (used + 1)).bit_length() - 1
    while place < len(calls) and calls[place].start < earliest_end:
        if not used >> place & 1:
            call = calls[place]
            earliest_end = min(earliest_end, call.end)
            kind = call.meanings, call.optional
            if kind not in choice or call.end < calls[choice[kind]].end:
                choice[kind] = place
        place += 1
    return list(choice.values())


def _balanced(
    balance: tuple[tuple[int, int], ...], meaning: int, change: int
) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the price of one more deletion or insertion, and the balance after it: the second half of a move is free."""
    open_ones = dict(balance)
    had = open_ones.pop(meaning, 0)
    if had + change:
        open_ones[meaning] = had + change
    return int(had * change >= 0), tuple(sorted(open_ones.items()))


def _way(reached: dict[_State, _ReachedState], state: _State) -> list[_ReachedState]:
    steps = []
    at: _State | None = state
    while at is not None:
        steps.append(reached[at])
        at = reached[at].before
    return steps[::-1]

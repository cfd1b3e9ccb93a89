"""Patterns of calls: sequences, any-order groups, optional and repeated parts, as terms that are taken call by call.

A term says which sequences of calls are right. `openings` takes one call off its front (a partial derivative), so that
a search can follow a sequence call by call without building an automaton first. An any-order group is a shuffle: its parts
may be interleaved, each keeps its own order, which makes ``[[a, b], c]`` the partial order with only "a before b".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

__all__ = ["EMPTY", "CallConstraint", "Meaning", "Repetition", "Sequenced", "Shuffle", "Term", "any_order", "is_over", "items", "least", "openings", "repeated", "sequence"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sequenced:
    """One part after the other."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Shuffle:
    """All parts, interleaved in any way."""

    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """The part at least `least` and at most `most` times; `most` is None for no limit."""

    part: Term
    least: int
    most: int | None


Term = int | Sequenced | Shuffle | Repetition
"""A number is one call that meets the expectation of that number."""

EMPTY = Sequenced(())
"""No call at all."""


def sequence(parts: Sequence[Term]) -> Term:
    """Return the parts one after the other, in the one form that equal terms share."""
    flat: list[Term] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sequenced) else (part,))
    return flat[0] if len(flat) == 1 else Sequenced(tuple(flat))


def any_order(parts: Sequence[Term]) -> Term:
    """Return the parts in any order."""
    flat: list[Term] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Shuffle) else () if part == EMPTY else (part,))
    flat.sort(key=repr)
    return EMPTY if not flat else flat[0] if len(flat) == 1 else Shuffle(tuple(flat))


def repeated(part: Term, least: int, most: int | None) -> Term:
    """Return the part `least` to `most` times."""
    if most == 0 or part == EMPTY:
        return EMPTY
    if (least, most) == (1, 1):
        return part
    return Repetition(part, 0 if is_over(part) else least, most)


@lru_cache(maxsize=65536)
def is_over(term: Term) -> bool:
    """Return whether no further call is needed."""
    if isinstance(term, int):
        return False
    if isinstance(term, Repetition):
        return term.least == 0 or is_over(term.part)
    return all(is_over(part) for part in term.parts)


@lru_cache(maxsize=65536)
def openings(term: Term) -> tuple[tuple[int, Term], ...]:
    """Return the expectations that the next call may meet, each with what is left then."""
    if isinstance(term, int):
        return ((term, EMPTY),)
    found: dict[tuple[int, Term], None] = {}
    if isinstance(term, Repetition):
        most = None if term.most is None else term.most - 1
        rest = repeated(term.part, max(term.least - 1, 0), most)
        found = {(item, sequence((left, rest))): None for item, left in openings(term.part)}
    elif isinstance(term, Shuffle):
        for place, part in enumerate(term.parts):
            others = term.parts[:place] + term.parts[place + 1 :]
            found |= {(item, any_order((left, *others))): None for item, left in openings(part)}
    else:
        for place, part in enumerate(term.parts):
            rest = Sequenced(term.parts[place + 1 :])
            found |= {(item, sequence((left, rest))): None for item, left in openings(part)}
            if not is_over(part):
                break
    return tuple(found)


def least(term: Term, fits: Callable[[int], bool]) -> int:
    """Return how many calls the term needs at least whose expectation `fits`."""
    if isinstance(term, int):
        return 1 if fits(term) else 0
    if isinstance(term, Repetition):
        return term.least * least(term.part, fits)
    return sum(least(part, fits) for part in term.parts)


@lru_cache(maxsize=65536)
def items(term: Term) -> frozenset[int]:
    """Return the expectations that the term names."""
    if isinstance(term, int):
        return frozenset((term,))
    return frozenset().union(*map(items, (term.part,) if isinstance(term, Repetition) else term.parts))


Meaning = frozenset[int]
"""Indexes of the expectations and rule names that a call's name meets: calls of one meaning are interchangeable."""


class CallConstraint(NamedTuple):
    """What may not happen between two calls, or must happen before or after one; a small automaton over the calls."""

    kind: Literal["between", "before", "after"]
    """`between`: none of `tool` from `opens` to the next `closes`; `before`, `after`: every `closes` has one of `tool`."""
    tool: Meaning
    opens: Meaning | None = None
    """None: the interval is open from the start."""
    closes: Meaning | None = None
    """None: the interval never ends."""

    def first(self) -> int:
        """Return the state before any call: 1 inside of the interval, 0 outside; nothing is seen or owed yet."""
        return 1 if self.kind == "between" and self.opens is None else 0

    def step(self, state: int, call: Meaning) -> int | None:
        """Return the state after a call; None when the call breaks the rule."""
        hit, closes = bool(self.tool & call), self.closes is not None and bool(self.closes & call)
        if self.kind == "before":
            return None if closes and not state else 1 if hit else state
        if self.kind == "after":
            return 1 if closes else 0 if hit else state
        if closes:
            if state == 2:
                return None
            state = 1 if self.opens is None else 0
        elif hit and state:
            if self.closes is None:
                return None
            state = 2
        return max(state, 1) if self.opens is not None and self.opens & call else state

    def may_end(self, state: int) -> bool:
        """Return whether the calls may end in this state."""
        return self.kind != "after" or state == 0

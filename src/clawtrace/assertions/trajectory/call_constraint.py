"""Rules about calls: what may not happen between two of them, or must happen before or after one."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["CallConstraint", "Meaning"]

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

"""Things in order of time that are taken one by one, found without passing again over those that were taken before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Sequence

__all__ = ["InOrder"]


class InOrder:
    """Things by their times.

    Args:
        entries: what begins with a time and ends with the number of a thing, in order.
    """

    def __init__(self, entries: Sequence[tuple[int, ...]]) -> None:
        self._entries = entries
        self._free = list(range(len(entries) + 1))
        """Of each place itself while its thing is free, else one nearer to the next free one."""

    def first_from(self, since: tuple[int, ...], taken: Container[int]) -> tuple[int, ...] | None:
        """Return the first entry from `since` on whose thing is not taken. What is taken once is never free again."""
        entries = self._entries
        place = self._next(bisect_left(entries, since))
        while place < len(entries) and entries[place][-1] in taken:
            self._free[place] = place + 1
            place = self._next(place)
        return entries[place] if place < len(entries) else None

    def _next(self, place: int) -> int:
        free, end = self._free, place
        while free[end] != end:
            end = free[end]
        while free[place] != end:
            free[place], place = end, free[place]
        return end

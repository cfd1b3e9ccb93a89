"""The parts of payloads, kept so that a message that is sent again with each call takes its memory once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add
from typing import Any, overload

from clawtrace.dialects.message_parts import Part

__all__ = ["SharedParts"]

_NUMBERS = 2
"""The first fields of a part say where it is in its payload; the others say the same in every payload."""


class SharedParts:
    """Keeps the parts of many payloads."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def of(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Return the parts of one payload, kept: each is made on first use."""
        known = self._known.setdefault
        numbers = tuple([known(part[:_NUMBERS], part[:_NUMBERS]) for part in parts])
        said = [part[_NUMBERS:] for part in parts]
        return _Parts(known(numbers, numbers), tuple([known(one, one) for one in said]))


class _Parts(Sequence[Part]):
    __slots__ = ("_numbers", "_said")

    def __init__(self, numbers: tuple[tuple[Any, ...], ...], said: tuple[tuple[Any, ...], ...]) -> None:
        self._numbers = numbers
        self._said = said

    def __len__(self) -> int:
        return len(self._said)

    @overload
    def __getitem__(self, place: int) -> Part: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Part]: ...
    def __getitem__(self, place: int | slice) -> Part | Sequence[Part]:
        if isinstance(place, slice):
            return _Parts(self._numbers[place], self._said[place])
        return Part._make(self._numbers[place] + self._said[place])

    def __iter__(self) -> Iterator[Part]:
        return map(Part._make, map(add, self._numbers, self._said))

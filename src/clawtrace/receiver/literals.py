"""One multi-pattern pass for literal texts, at the speed of `memchr`.

An alternation of literals costs `re` 10 ns a byte. Each literal has a byte that is rare in agents' traffic; literals
that share their rarest byte become one expression that starts with it, which `re` searches with `memchr`, and look
around it for the rest: 15 literals then cost 1.7 ns a byte (measured on 3 KB spans; Aho-Corasick in Python costs 50).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

__all__ = ["Literals"]

_RARE_FIRST = "ZQXJKBA-_" + "YWVUPOLNMHFGRDCEITS" + "zqjxkvwypbgfmuchldrsnioaet "
"""Bytes by how rarely they stand in messages, attribute keys and ids; unknown ones count as rare."""


def _rarest(literal: str) -> int:
    """Return the position of the byte of `literal` that is rarest in ordinary text."""
    return min(range(len(literal)), key=lambda index: (_RARE_FIRST.find(literal[index]), index))


def _anchored(literals: Iterable[str]) -> list[str]:
    """Return expressions that find any of `literals`, one for each anchor."""
    every = list(dict.fromkeys(literals))
    shortest = [one for one in every if not any(other in one and other != one for other in every)]
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for literal in shortest:
        position = _rarest(literal)
        groups[literal[position]].append((literal[: position + 1], literal[position + 1 :]))
    return [_expression(anchor, sides) for anchor, sides in groups.items()]


def _expression(anchor: str, sides: list[tuple[str, str]]) -> str:
    """Return the expression of one anchor; the two bytes before it are asked first, because they rule out nearly all."""
    first = ""
    if all(len(before) > 2 for before, _ in sides):
        classes = ("".join(sorted({re.escape(before[place]) for before, _ in sides})) for place in (-3, -2))
        first = f"(?<=[{']['.join(classes)}]{re.escape(anchor)})"
    checks = "|".join(f"(?<={re.escape(before)}){re.escape(after)}" for before, after in sides)
    return f"{re.escape(anchor)}{first}(?:{checks})"


class Literals:
    """A set of literals that can be looked for in bytes and in text."""

    def __init__(self, common: Iterable[str], rare: Iterable[str] = ()) -> None:
        """Compile the set.

        Args:
            common: short literals of ASCII characters, anchored at their rarest one.
            rare: long literals of any characters, searched one by one (a long text is skipped through quickly).
        """
        anchored = _anchored(common)
        self._bytes = [re.compile(expression.encode("ascii")).search for expression in anchored]
        self._texts = [re.compile(expression).search for expression in anchored]
        self._rare_texts = list(dict.fromkeys(rare))
        self._rare_bytes = [literal.encode("utf-8", "surrogatepass") for literal in self._rare_texts]

    def in_bytes(self, data: bytes) -> bool:
        """Say whether any literal stands in `data` (UTF-8)."""
        return any(search(data) for search in self._bytes) or any(literal in data for literal in self._rare_bytes)

    def in_text(self, text: str) -> bool:
        """Say whether any literal stands in `text`."""
        return any(search(text) for search in self._texts) or any(literal in text for literal in self._rare_texts)

"""Glob patterns over model names: matching, and whether two of them can match the same name."""

from __future__ import annotations

import fnmatch
import re
from functools import cache

__all__ = ["can_both_match", "compile_glob", "literal_length"]

_TOKEN = re.compile(r"\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return the regular expression that a whole name must match (`*`, `?`, `[…]`; lower case)."""
    return re.compile(fnmatch.translate(pattern.lower()))


def _tokens(pattern: str) -> list[str]:
    return _TOKEN.findall(pattern.lower())


def literal_length(pattern: str) -> int:
    """Return how many characters of `pattern` are literal."""
    return sum(len(token) == 1 and token not in "*?" for token in _tokens(pattern))


def _meet(left: str, right: str) -> bool:
    """Whether one character can match both one-character tokens."""
    if left == "?" or right == "?":
        return True
    if len(left) == 1 and len(right) == 1:
        return left == right
    if len(left) == 1:
        return compile_glob(right).match(left) is not None
    if len(right) == 1:
        return compile_glob(left).match(right) is not None
    both = (compile_glob(left), compile_glob(right))
    return any(all(glob.match(chr(code)) for glob in both) for code in range(0x20, 0x180))


def can_both_match(left: str, right: str) -> bool:
    """Return whether some name matches both patterns."""
    a, b = _tokens(left), _tokens(right)

    @cache
    def meet(i: int, j: int) -> bool:
        if i == len(a) and j == len(b):
            return True
        if i < len(a) and a[i] == "*":
            return meet(i + 1, j) or (j < len(b) and meet(i, j + 1))
        if j < len(b) and b[j] == "*":
            return meet(i, j + 1) or (i < len(a) and meet(i + 1, j))
        return i < len(a) and j < len(b) and _meet(a[i], b[j]) and meet(i + 1, j + 1)

    return meet(0, 0)

"""Rewrite the parameter marker ``:name`` of portable SQL into an engine's own, and nothing else.

Text in quotes, comments and casts (``::``) are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["replace_markers", "rewrite_markers"]

_TOKENS = re.compile(
    r"""
    (?P<keep> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | :: )
  | :(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    """,
    re.VERBOSE | re.DOTALL,
)


def rewrite_markers(sql: str, prefix: str, suffix: str = "") -> str:
    """Return `sql` with each ``:name`` written as ``prefix + name + suffix``."""
    return replace_markers(sql, lambda name: f"{prefix}{name}{suffix}")


def replace_markers(sql: str, written: Callable[[str], str]) -> str:
    """Return `sql` with each ``:name`` as `written` writes it."""
    return _TOKENS.sub(lambda match: match["keep"] or written(match["name"]), sql)

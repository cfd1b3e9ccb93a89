"""Rewrite the parameter marker ``:name`` of portable SQL into an engine's own, and nothing else.

Text in quotes, comments and casts (``::``) are left as they are.
"""

from __future__ import annotations

import re

__all__ = ["rewrite_markers"]

_TOKENS = re.compile(
    r"""
    (?P<keep> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | :: )
  | :(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    """,
    re.VERBOSE | re.DOTALL,
)


def rewrite_markers(sql: str, prefix: str, suffix: str = "") -> str:
    """Return `sql` with each ``:name`` written as ``prefix + name + suffix``."""
    return _TOKENS.sub(lambda match: match["keep"] or f"{prefix}{match['name']}{suffix}", sql)

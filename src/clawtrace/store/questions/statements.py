"""Texts of SQL, each parsed once in a process: DuckDB's parser takes a quarter of the time of a small question.

Plans are not kept: DuckDB plans a prepared statement again at every execution, for the statistics of that moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, Statement

__all__ = ["parsed", "replace_markers", "rewrite_markers"]

_TOKENS = re.compile(
    r"""
    (?P<keep> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | :: )
  | :(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    """,
    re.VERBOSE | re.DOTALL,
)


def rewrite_markers(sql: str) -> str:
    """Return `sql` with each ``:name`` written as DuckDB has it, ``$name``."""
    return replace_markers(sql, lambda name: f"${name}")


def replace_markers(sql: str, written: Callable[[str], str]) -> str:
    """Return `sql` with each ``:name`` as `written` writes it."""
    return _TOKENS.sub(lambda match: match["keep"] or written(match["name"]), sql)


_KEPT = 1_000
"""Texts that are kept: every text of the engine, and those of several hundred assertions."""
_parsed: dict[str, list[Statement]] = {}


def parsed(connection: DuckDBPyConnection, sql: str) -> list[Statement]:
    """Return the statements of a text, which any connection can run.

    Raises:
        duckdb.Error: the engine's words.
    """
    found = _parsed.get(sql)
    if found is None:
        if len(_parsed) >= _KEPT:
            _parsed.clear()
        found = _parsed[sql] = connection.extract_statements(sql)
    return found

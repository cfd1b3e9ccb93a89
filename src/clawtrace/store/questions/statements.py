"""Texts on connections, each parsed once in a process: DuckDB's parser takes a quarter of the time of a small question.

Plans are not kept: DuckDB plans a prepared statement again at every execution, for the statistics of that moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from clawtrace.model.query import Scalar

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation, Statement

__all__ = ["Statements", "replace_markers", "rewrite_markers"]

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


_KEPT = 1_000
"""Texts that are kept: every text of the engine, and those of several hundred assertions."""


class Statements:
    """Runs SQL on a connection."""

    _parsed: ClassVar[dict[str, list[Statement]]] = {}
    """Statements by text; any connection can run them."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        self.asked = 0
        """Texts that were run."""

    def run(self, sql: str, params: Mapping[str, Scalar] | None = None) -> DuckDBPyConnection:
        """Run a text of one or several statements; `params` are of the last one, whose rows can be fetched.

        Raises:
            duckdb.Error: the engine's words.
        """
        *before, last = self._statements_of(sql)
        for statement in before:
            self._connection.execute(statement)
        return self._connection.execute(last, dict(params) if params else None)

    def relation(self, sql: str, params: Mapping[str, Scalar] | None = None) -> DuckDBPyRelation:
        """Return the rows of a text of one SELECT, which runs when they are read.

        Raises:
            duckdb.Error: the engine's words.
        """
        (statement,) = self._statements_of(sql)
        return self._connection.sql(statement, params=dict(params) if params else None)

    def _statements_of(self, sql: str) -> list[Statement]:
        self.asked += 1
        parsed = self._parsed.get(sql)
        if parsed is None:
            parsed = self._connection.extract_statements(sql)
            if len(self._parsed) >= _KEPT:
                self._parsed.clear()
            self._parsed[sql] = parsed
        return parsed

"""Limits how much of the file stays in memory while only spans arrive.

DuckDB keeps every block that it has written as long as there is room, and room is 80 % of the machine's memory. A question
needs that room; who only receives does not. So once in a while what was written is dropped, down to a little, by a limit that
is valid for that instant alone.
"""

from __future__ import annotations

import contextlib
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["CachedBlocks"]

_ROWS_BETWEEN = 50_000
"""Rows between two looks at what is kept."""
_MANY_BYTES = 128 << 20
_FEW_BYTES = 32 << 20
"""Of blocks as they are in the file: more than many are dropped until few are left, the latest used."""


class CachedBlocks:
    """Drops written rows that are not read.

    Args:
        db: the connection that writes; it may still change ``memory_limit``.
        questions: held while asking; a question must never meet the limit of an instant.
    """

    def __init__(self, db: DuckDBPyConnection, questions: RLock) -> None:
        self._db = db
        self._questions = questions
        self._rows = 0

    def wrote(self, rows: int) -> None:
        """Count rows that were moved into the tables, and drop what there is much of, unless a question is asked."""
        self._rows += rows
        if self._rows < _ROWS_BETWEEN or not self._questions.acquire(blocking=False):
            return
        import duckdb

        self._rows = 0
        try:
            # What was written is durable, even if this fails; the next question reports what is wrong with the file.
            with contextlib.suppress(duckdb.Error):
                self._drop_blocks()
        finally:
            self._questions.release()

    def _drop_blocks(self) -> None:
        used = dict(self._db.execute("SELECT tag, memory_usage_bytes FROM duckdb_memory()").fetchall())
        blocks = used.pop("BASE_TABLE")
        if blocks <= _MANY_BYTES:
            return
        import duckdb

        with contextlib.suppress(duckdb.Error):  # what cannot be dropped now stays, and so does the limit
            self._db.execute(f"SET memory_limit = '{sum(used.values()) + _FEW_BYTES}B'")
        self._db.execute("RESET memory_limit")

"""How much of the file stays in memory while spans only come in, and of what answered questions.

DuckDB keeps every block that it has written as long as there is room, and room is 80 % of the machine's memory. A question
needs that room; who only receives does not. So once in a while what was written is dropped, down to a little, by a limit that
is valid for that instant alone.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["CachedBlocks", "move_log"]

_ROWS_BETWEEN = 50_000
"""Rows between two looks at what is kept."""
_MANY_BYTES = 128 << 20
_FEW_BYTES = 32 << 20
"""Of blocks as they are in the file: more than many are dropped until few are left, the latest used."""
_QUESTIONS_BETWEEN = 2_000
"""So many leave some eight megabytes of what they used."""
_LOG_BYTES = 4 << 20
"""What is in the write-ahead log is in memory, too: of a campaign without spans the records of its runs."""


def move_log(db: DuckDBPyConnection, path: str, at_least: int) -> None:
    """Move the write-ahead log into the file when it has so many bytes; one that cannot be moved now stays.

    Raises:
        duckdb.Error: the engine has stopped, as it does when the file cannot be written.
    """
    import duckdb

    with contextlib.suppress(FileNotFoundError, duckdb.TransactionException):
        if Path(f"{path}.wal").stat().st_size >= at_least:
            db.execute("CHECKPOINT")


class CachedBlocks:
    """Drops written rows that are not read, and what questions left behind.

    Args:
        db: the connection that writes; it may still change ``memory_limit``.
        questions: held while asking; a question must never meet the limit of an instant.
    """

    def __init__(self, db: DuckDBPyConnection, path: str, questions: RLock) -> None:
        self._db = db
        self._path = path
        self._questions = questions
        self._rows = 0
        self._asked = 0

    def wrote(self, rows: int, asked: int) -> None:
        """Count rows that were moved into the tables, and drop what there is much of, unless a question is asked.

        Args:
            rows: since the last call.
            asked: how many questions were asked so far.
        """
        self._rows += rows
        many_rows, many_questions = self._rows >= _ROWS_BETWEEN, asked - self._asked >= _QUESTIONS_BETWEEN
        if not (many_rows or many_questions) or not self._questions.acquire(blocking=False):
            return
        import duckdb

        try:
            # What was written is durable, even if this fails; the next question reports what is wrong with the file.
            with contextlib.suppress(duckdb.Error):
                self._drop(asked, many_rows=many_rows, many_questions=many_questions)
        finally:
            self._questions.release()

    def _drop(self, asked: int, *, many_rows: bool, many_questions: bool) -> None:
        if many_rows:
            self._rows = 0
            self._drop_blocks()
        if many_questions:
            self._asked = asked
            move_log(self._db, self._path, _LOG_BYTES)
            self._forget_handles()

    def _drop_blocks(self) -> None:
        blocks, others = self._used()
        if blocks > _MANY_BYTES:
            self._limit(others + _FEW_BYTES)

    def _forget_handles(self) -> None:
        """Let DuckDB go through its queues of what could be evicted, unless it would have to write much aside.

        It keeps the handle of every block that a question used, some four kilobytes a question, and forgets those of blocks
        that are no more when a queue has 32 768 of them, or when it looks for room. This limit is refused, so it never holds.
        """
        _, others = self._used()
        if others <= _MANY_BYTES:
            self._limit(0)

    def _used(self) -> tuple[int, int]:
        """Return the bytes of memory that hold blocks of the file, and those of all else."""
        used = dict(self._db.execute("SELECT tag, memory_usage_bytes FROM duckdb_memory()").fetchall())
        blocks = used.pop("BASE_TABLE")
        return blocks, sum(used.values())

    def _limit(self, limit_bytes: int) -> None:
        import duckdb

        with contextlib.suppress(duckdb.Error):  # what cannot be dropped now stays, and so does the limit
            self._db.execute(f"SET memory_limit = '{limit_bytes}B'")
        self._db.execute("RESET memory_limit")

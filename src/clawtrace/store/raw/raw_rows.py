"""Raw rows on their way into the tables: acknowledged from the journal, moved in bulk.

To insert a few spans costs DuckDB 70 µs a span, to insert thousands at once 20. So a small group is only appended to the
journal and held in memory; it is moved, together with all that gathered, when enough rows did, before anything reads the
raw tables, when nothing arrives for a while, and when the store is closed or opened again after its process was killed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from clawtrace.errors import StoreError
from clawtrace.model.batches import joined
from clawtrace.model.raw import Receipt
from clawtrace.store.files.schema import journal_state
from clawtrace.store.files.transaction import transaction
from clawtrace.store.raw.journal import Group, Journal, MemoryJournal, problem
from clawtrace.store.raw.raw_inserts import RawInserts, write_numbers

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["RawRows"]

T = TypeVar("T")

_MANY_ROWS = 4_096
"""So many are moved at once: more make it no cheaper, and they take memory and the time of the one that waits."""

_LARGE_GROUP = 1_024
"""A group of so many rows is moved at once: it costs less than to write it twice."""
_MANY_BYTES = 16 << 20
"""A journal of so many bytes is moved; what it holds is held in memory too, and read when a store is opened."""


class RawRows:
    """The writing side of the raw tables; every call is made under the lock of that side.

    Args:
        db: the connection that writes.
        path: file of the store, for messages.
        journal: where acknowledged groups are kept.
    """

    def __init__(self, db: DuckDBPyConnection, path: str, journal: Journal | MemoryJournal) -> None:
        self._db = db
        self._path = path
        self._journal = journal
        self._held: list[Group] = []
        self._rows = 0
        self._store_id = ""
        self._last = 0
        """Number of the last group that was journaled."""
        self._inserts: RawInserts | None = None
        """Prepared by the first move; forgotten when one fails."""

    def __bool__(self) -> bool:
        """Whether anything waits to be moved."""
        return bool(self._held)

    def take(self, group: Group) -> bool:
        """Make a group durable, to be moved later; False when it should be moved at once, with all that waits.

        Raises:
            StoreError: nothing of it was written.
        """
        journal = self._journal
        if group.rows >= _LARGE_GROUP or self._rows + group.rows >= _MANY_ROWS or journal.size >= _MANY_BYTES:
            return False
        for batch in (group.spans, group.logs):
            if len(batch) and (found := problem(batch)):
                raise StoreError(f"cannot write to the store {self._path!r}: {found}")
        if not self._store_id:
            self._begin()
        journal.append(self._store_id, self._last + 1, group)
        self._last += 1
        self._held.append(group)
        self._rows += group.rows
        return True

    def move(self, group: Group | None = None, then: Callable[[DuckDBPyConnection], T] | None = None) -> T | None:
        """Write all that waits, and `group`, into the tables in one transaction, whose last step is `then`.

        Raises:
            StoreError: nothing was moved; what waits still does, and is as durable as before.
        """
        groups = [*self._held, *([] if group is None else [group])]
        inserts, self._inserts = self._inserts or RawInserts(self._db), None
        with transaction(self._db, self._path) as db:
            numbers = [pair for one in groups for pair in one.numbers]
            write_numbers(db, numbers)
            spans = [one.spans for one in groups if len(one.spans)]
            logs = [one.logs for one in groups if len(one.logs)]
            receipts: list[Receipt] = [receipt for one in groups for receipt in one.receipts]
            if spans:
                inserts.spans(joined(spans))
            if logs:
                inserts.logs(joined(logs))
            inserts.receipts(receipts)
            if self._held:
                db.execute("UPDATE journal_state SET moved = ?", [self._last])
            done = then(db) if then else None
        self._inserts = inserts
        self._held, self._rows = [], 0
        self._journal.clear()
        return done

    def recover(self) -> None:
        """Move what a process that was killed left in the journal.

        Raises:
            StoreError: it cannot be read or moved; it is left as it is.
        """
        if not self._journal.exists():
            return
        self._store_id, self._last = self._state() or ("", 0)
        for number, group in self._journal.groups(self._store_id or None, self._last):
            if number > self._last:
                self._held.append(group)
                self._last = number
        if self._held:
            self.move()
        self._journal.remove()

    def close(self) -> None:
        """Move all that waits, and leave no journal behind.

        Raises:
            StoreError: it could not be moved; the next one to open the store does it.
        """
        try:
            if self._held:
                self.move()
            self._journal.remove()
        finally:
            self._journal.close()

    def _begin(self) -> None:
        state = self._state()
        if state is None:  # the store was made before there were journals
            with transaction(self._db, self._path) as db:
                db.execute(journal_state())
            state = self._state()
        self._store_id, self._last = state or ("", 0)

    def _state(self) -> tuple[str, int] | None:
        """Return the id of the store and the number of the last group in the tables; None where that is not kept."""
        import duckdb

        try:
            rows: list[tuple[str, int]] = self._db.execute("SELECT store_id, moved FROM journal_state").fetchall()
        except duckdb.CatalogException:
            return None
        return rows[0] if rows else None

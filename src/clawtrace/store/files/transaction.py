"""One transaction of a store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from clawtrace.errors import StoreError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["transaction"]


@contextlib.contextmanager
def transaction(db: DuckDBPyConnection, path: str) -> Iterator[DuckDBPyConnection]:
    """BEGIN … COMMIT, ROLLBACK on any error; engine errors become `StoreError`."""
    import duckdb

    db.execute("BEGIN")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException as error:
        with contextlib.suppress(duckdb.Error):
            db.execute("ROLLBACK")
        if isinstance(error, duckdb.Error):
            raise StoreError(f"cannot write to the store {path!r}: {error}") from error
        raise

"""One transaction of a store."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from clawtrace.errors import StoreError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Transaction"]


class Transaction:
    """BEGIN … COMMIT, ROLLBACK on any error; engine errors become `StoreError`."""

    def __init__(self, db: DuckDBPyConnection, path: str) -> None:
        self._db = db
        self._path = path

    def __enter__(self) -> DuckDBPyConnection:
        self._db.execute("BEGIN")
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import duckdb

        if error is not None:
            with contextlib.suppress(duckdb.Error):
                self._db.execute("ROLLBACK")
            if isinstance(error, duckdb.Error):
                raise StoreError(f"cannot write to the store {self._path!r}: {error}") from error
            return
        try:
            self._db.execute("COMMIT")
        except duckdb.Error as failure:
            raise StoreError(f"cannot write to the store {self._path!r}: {failure}") from failure

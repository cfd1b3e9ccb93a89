"""A user's own SQL on DuckDB: one SELECT, and not for longer than it may run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clawtrace.errors import QueryError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["check_single_select", "time_limit"]


def check_single_select(sql: str) -> None:
    """Refuse whatever is not exactly one SELECT.

    Raises:
        QueryError: the text cannot be parsed, or is something else.
    """
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise QueryError(str(error)) from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise QueryError("only one SELECT can be asked: the store is read-only for queries.")


@contextmanager
def time_limit(connection: DuckDBPyConnection, seconds: float | None) -> Iterator[None]:
    """Interrupt what `connection` runs in this block after so many seconds, and nothing after the block.

    Raises:
        QueryError: the query was interrupted.
    """
    import duckdb

    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, connection.interrupt)
    timer.start()
    try:
        yield
    except QueryError as error:
        if isinstance(error.__cause__, duckdb.InterruptException):
            raise QueryError(f"the query ran longer than {seconds:g} s and was interrupted.") from error
        raise
    finally:
        timer.cancel()
        timer.join()

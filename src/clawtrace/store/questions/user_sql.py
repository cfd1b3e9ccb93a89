"""A user's own SQL on DuckDB: one SELECT, and not for longer than it may run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from clawtrace.errors import QueryError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["check_single_select", "run_interruptibly"]

T = TypeVar("T")

_STEP_SECONDS = 0.05
"""How long an interrupted statement may take before it is interrupted once more."""


def check_single_select(sql: str) -> None:
    """Refuse anything that is not exactly one SELECT.

    Raises:
        QueryError: the text cannot be parsed, or is something else.
    """
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise QueryError(str(error)) from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise QueryError("only one SELECT is allowed: queries cannot change the store.")


def run_interruptibly(connection: DuckDBPyConnection, seconds: float | None, ask: Callable[[], T]) -> T:
    """Return what `ask` returns, which runs one statement on `connection`, and end it after so many seconds.

    It runs on a separate thread: DuckDB may look at no signal until a statement ends, and the caller's thread, where
    Ctrl-C arrives, only waits here. Anything that ends the wait interrupts the statement first.

    Raises:
        QueryError: the query ran longer than it may, or what `ask` raises.
    """
    from concurrent.futures import Future, wait

    answer: Future[T] = Future()

    def work() -> None:
        if answer.set_running_or_notify_cancel():
            try:
                answer.set_result(ask())
            except BaseException as error:
                answer.set_exception(error)

    try:
        threading.Thread(target=work, name="clawtrace-query").start()
        wait([answer], seconds)
        if not answer.done():
            raise QueryError(f"the query ran longer than {seconds:g} s and was interrupted.")
        return answer.result()
    finally:
        # What has not begun never begins. The other more than once: what comes before the statement has begun is lost on it.
        while not answer.cancel() and not answer.done():
            connection.interrupt()
            wait([answer], _STEP_SECONDS)

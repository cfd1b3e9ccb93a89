"""The question side of an embedded store: facts are written and relations asked on a separate connection.

A store has several, which can be used at the same time, each by one thread: DuckDB plans small questions on one core.
What they load and select is seen by themselves alone.

A user's own SQL is one SELECT, and runs for no longer than it may.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from clawtrace.errors import QueryError, StoreError
from clawtrace.model.query import NO_LIMITS, BoundRelation, Limits, Query, Scalar
from clawtrace.store.api import Answer, Columns
from clawtrace.store.arrow import rows_table
from clawtrace.store.files.failures import as_store_errors, is_of_the_store, store_error
from clawtrace.store.questions.statements import parsed, rewrite_markers

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from clawtrace.store.questions.columns import ColumnAnswer

__all__ = ["QuestionSide"]

USER_MEMORY_BYTES = 1 << 30
"""The most bytes that a user's SQL with a time limit may sort, group and join. DuckDB does not count one long text; `address_space` does."""
_COPIED_ROWS = 2_000
"""Relations of more rows are copied into a table when they are loaded."""
_OF_A_SIGNAL = re.compile(r"(?:KeyboardInterrupt:|SystemExit: (\d+))\s*$")
"""The end of the engine's error for an exception raised in a signal handler."""


class QuestionSide:
    """One connection that asks; see `clawtrace.store.api` for what it promises.

    Args:
        connection: used for nothing else.
        path: of the store, for messages.
        settle: called before anything is read, to bring what was acknowledged into the tables.
    """

    def __init__(self, connection: DuckDBPyConnection, path: str, settle: Callable[[], None]) -> None:
        self.path = path
        self._settle_rows = settle
        self._reader_lock = threading.RLock()
        self._use(connection)

    def _use(self, connection: DuckDBPyConnection) -> None:
        """Ask on this connection from now on, on which nothing is loaded and selected yet."""
        self._reader = connection
        self._reader.execute("CREATE TEMP TABLE selected_runs (run_id VARCHAR)")
        self._selected: list[str] = []
        self._loaded: dict[str, bool] = {}
        self._bound: dict[str, tuple[tuple[str, int], ...]] = {}
        """The rows that a relation was bound with last; most questions are followed by that for their evidence."""

    # Facts ------------------------------------------------------------------------------------

    def script(self, sql: str, params: Mapping[str, Scalar] | None = None) -> list[tuple[Any, ...]]:
        """Run the engine's own SQL on the question side and return the last statement's rows.

        Raises:
            StoreError: the engine's words; nothing is rolled back here (the caller owns the transaction).
        """
        with self._own_statement():
            cursor = self._run(sql, params)
            return cursor.fetchall() if cursor.description else []

    def columns(self, sql: str) -> ColumnAnswer:
        """Run one SELECT of the engine's own and return its rows in Arrow's columns (see `ask_columns`).

        Raises:
            StoreError: the engine's words.
        """
        from clawtrace.store.questions.columns import ColumnAnswer

        with self._own_statement():
            return ColumnAnswer(self._relation(sql))

    def stream(self, sql: str, take: Callable[[Any], None]) -> None:
        """Run one SELECT of the engine's own and hand its rows over, as what has ``__arrow_c_stream__`` and is read at once.

        Raises:
            StoreError: the engine's words.
        """
        with self._own_statement():
            take(self._relation(sql))

    def _run(self, sql: str, params: Mapping[str, Scalar] | None = None) -> DuckDBPyConnection:
        """Run a text of one or several statements; `params` are of the last one, whose rows can be fetched."""
        *before, last = parsed(self._reader, sql)
        for statement in before:
            self._reader.execute(statement)
        return self._reader.execute(last, dict(params) if params else None)

    def _relation(self, sql: str, params: Mapping[str, Scalar] | None = None) -> DuckDBPyRelation:
        """Return the rows of a text of one SELECT, which runs when they are read."""
        (statement,) = parsed(self._reader, sql)
        return self._reader.sql(statement, params=dict(params) if params else None)

    def load(self, name: str, columns: Mapping[str, tuple[str, Sequence[Any]]]) -> None:
        """Make the temporary relation `name` of the question side hold exactly these columns.

        A few rows are read where they are; only many are copied into a table, whose statistics the planner then has
        (creating a table costs more than a millisecond, and one recorded run loads some twenty relations).
        """
        rows = rows_table(columns)
        copied = len(next(iter(columns.values()))[1]) > _COPIED_ROWS
        with self._reader_lock, as_store_errors(self.path):
            self._bound.pop(name, None)
            if self._loaded.get(name, copied) != copied:
                self._reader.execute(f'DROP {"VIEW" if copied else "TABLE"} "{name}"')
            self._loaded[name] = copied
            if not copied:
                self._reader.register(name, rows)
                return
            self._reader.register("incoming", rows)
            self._reader.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT * FROM incoming')
            self._reader.unregister("incoming")

    def insert(self, table: str, columns: Mapping[str, tuple[str, Sequence[Any]]]) -> None:
        """Append rows to a table, by column name; the caller owns the transaction.

        Raises:
            StoreError: the engine's words.
        """
        if not next(iter(columns.values()))[1]:
            return
        with self._reader_lock, as_store_errors(self.path):
            self._reader.register("incoming", rows_table(columns))
            self.script(f'INSERT INTO "{table}" BY NAME SELECT * FROM incoming')
            self._reader.unregister("incoming")

    @property
    def lock(self) -> threading.RLock:
        """Hold it over several calls that belong together on the question side."""
        return self._reader_lock

    # Questions --------------------------------------------------------------------------------

    def sides(self) -> Sequence[QuestionSide]:
        """Return what can be asked at the same time (see `clawtrace.store.api`): a side alone is one."""
        return [self]

    def select_runs(self, run_ids: Iterable[str]) -> None:
        """Make ``selected_runs`` hold exactly `run_ids`."""
        wanted = list(run_ids)
        with self._reader_lock, as_store_errors(self.path):
            if wanted == self._selected:
                return
            self._selected = []
            # Made anew: the planner counts deleted rows too, and took the wrong side of a join for the smaller one.
            made = "CREATE OR REPLACE TEMP TABLE selected_runs AS SELECT"
            if len(wanted) <= _COPIED_ROWS:
                self._reader.execute(f"{made} unnest(?::VARCHAR[]) AS run_id", [wanted])
            else:
                self._reader.register("incoming", rows_table({"run_id": ("text", wanted)}))
                self._reader.execute(f"{made} run_id FROM incoming")
                self._reader.unregister("incoming")
            self._selected = wanted

    def ask(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Answer:
        """Answer one query over the relations, ``selected_runs`` and `bound`.

        Raises:
            QueryError: the engine refuses it.
            StoreError: the file is damaged where it has to be read.
        """
        self._settle_rows()
        with self._reader_lock:
            self._bind(bound)
            return self._answer(query)

    def ask_columns(self, query: Query, bound: Sequence[BoundRelation] = ()) -> Columns:
        """Answer as `ask` does; of many runs in columns whose values become Python's when they are read.

        Arrow's stream costs a second planning, which only many rows repay.
        """
        if len(self._selected) <= _COPIED_ROWS:
            return self.ask(query, bound)
        import duckdb

        from clawtrace.store.questions.columns import ColumnAnswer

        self._settle_rows()
        with self._reader_lock:
            self._bind(bound)
            try:
                return ColumnAnswer(self._relation(rewrite_markers(query.sql), query.params))
            except (duckdb.Error, RuntimeError) as error:  # what fails while rows are read comes through nanoarrow
                raise self._described(error) from error

    @contextlib.contextmanager
    def narrowed(self, run_ids: Sequence[str], queries: Sequence[Query]) -> Iterator[None]:
        """Answer `queries` inside, on every side, from copies of these runs' rows."""
        from clawtrace.store.questions.narrowed import narrowed

        with self._reader_lock, narrowed(self.sides(), run_ids, queries):
            yield

    def _bind(self, bound: Sequence[BoundRelation]) -> None:
        for relation in bound:
            if self._bound.get(relation.name) is relation.rows:
                continue
            values, items = zip(*relation.rows, strict=True) if relation.rows else ((), ())
            self.load(relation.name, {"value": ("text", values), "item": ("bigint", items)})
            if len(values) <= _COPIED_ROWS:
                self._bound[relation.name] = relation.rows

    def _answer(self, query: Query, max_rows: int | None = None) -> Answer:
        import duckdb

        try:
            cursor = self._run(rewrite_markers(query.sql), query.params)
            columns = tuple(column[0] for column in cursor.description)
            return Answer(columns, cursor.fetchall() if max_rows is None else cursor.fetchmany(max_rows))
        except duckdb.Error as error:
            raise self._described(error) from error

    def _described(self, error: Exception) -> QueryError | StoreError:
        """Return what an error of the engine's is: of the question, or of the file.

        Raises:
            KeyboardInterrupt, SystemExit: of a signal that arrived while the engine ran Python.
        """
        if struck := _OF_A_SIGNAL.search(str(error)):
            raise (SystemExit(int(struck[1])) if struck[1] else KeyboardInterrupt) from error
        return store_error(self.path, error, "read") if is_of_the_store(error) else QueryError(str(error))

    @contextlib.contextmanager
    def _own_statement(self) -> Iterator[None]:
        """Hold the lock for a statement of the engine's own, over all rows that were acknowledged.

        Raises:
            StoreError: what is wrong with the statement or the file.
        """
        import duckdb

        self._settle_rows()
        with self._reader_lock:
            try:
                yield
            except (duckdb.Error, RuntimeError) as error:  # what fails while rows are read comes through nanoarrow
                if is_of_the_store(error):
                    raise store_error(self.path, error, "use") from error
                raise StoreError(f"the store {self.path!r} rejected a statement: {error}") from error

    def ask_user(self, sql: str, params: Mapping[str, Scalar] | None = None, limits: Limits = NO_LIMITS) -> Answer:
        """Answer a user's own SQL: exactly one SELECT, in a read-only transaction (see `clawtrace.store.api`).

        Raises:
            QueryError: the text is no single SELECT, the engine refuses it, or the time limit has passed.
            StoreError: the file is damaged where it has to be read.
        """
        from clawtrace.store.questions.address_space import bounded

        self._settle_rows()
        with self._reader_lock, as_store_errors(self.path):
            check_single_select(self._reader, rewrite_markers(sql))
            if limits.time_limit_s is not None:
                self._bound_memory()
            self._reader.execute("BEGIN TRANSACTION READ ONLY")
            try:
                query = Query(sql, dict(params or {}))
                with contextlib.nullcontext() if limits.time_limit_s is None else bounded(USER_MEMORY_BYTES):
                    return run_interruptibly(
                        self._reader, limits.time_limit_s, lambda: self._answer(query, limits.max_rows)
                    )
            except MemoryError as error:
                raise QueryError("Out of Memory: the answer is larger than a question may gather.") from error
            finally:
                self._reader.execute("ROLLBACK")
                if limits.time_limit_s is not None:
                    self._reader.execute("RESET memory_limit")

    def _bound_memory(self) -> None:
        """Leave so much memory to what the question gathers; a commit that finds too little is asked for again."""
        used = self._reader.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()[0][0]
        self._reader.execute(f"SET memory_limit = '{int(used) + USER_MEMORY_BYTES}B'")


T = TypeVar("T")

_STEP_SECONDS = 0.05
"""Seconds that an interrupted statement may take before it is interrupted again."""


def check_single_select(connection: DuckDBPyConnection, sql: str) -> None:
    """Refuse anything that is not exactly one SELECT.

    Raises:
        QueryError: the text cannot be parsed, or is something else.
    """
    import duckdb

    try:
        statements = parsed(connection, sql)
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

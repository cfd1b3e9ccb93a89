"""One session on a ClickHouse server: its temporary tables, its settings, and its errors as ours.

The client is `clickhouse-connect`, which is installed with the extra ``clickhouse`` and loaded when it is needed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from clawtrace.errors import StoreError, UsageError
from clawtrace.store.clickhouse.address import PASSWORD, ClickHouseAddress

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

__all__ = ["ServerError", "ServerSession"]

T = TypeVar("T")

_SETTINGS = {
    "join_use_nulls": 1,
    "aggregate_functions_null_for_empty": 1,
    "session_timeout": 3600,
    "send_progress_in_http_headers": 0,
}
"""Settings for which NULL means unknown, as in the portable SQL, and which keep the session's tables for an idle hour."""
_JSON = {"output_format_json_quote_64bit_integers": 0, "wait_end_of_query": 1}
"""Numbers as numbers; and an error that comes late is an error, not the end of the answer."""
_SECONDS = 600
_ACCESS, _WRONG_USER, _NO_DATABASE, _NO_TABLE, _READONLY = 497, 516, 81, 60, 164
_INSTALL = "a ClickHouse store needs its client: in clawtrace's checkout, uv tool install --force '.[clickhouse]'"


class ServerError(StoreError):
    """The server refused a statement; `code` is ClickHouse's number of the error, 0 where it gave none."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_permission(self) -> bool:
        """Whether the user may not do it."""
        return self.code in (_ACCESS, _READONLY)

    @property
    def is_missing(self) -> bool:
        """Whether a table or database is not there."""
        return self.code in (_NO_TABLE, _NO_DATABASE)


class ServerSession:
    """A separate session: temporary tables made on it are seen by nothing else, and end with it.

    Raises:
        UsageError: the client is not installed.
        StoreError: the server is not there, or does not let the user in; the message says which.
    """

    def __init__(self, address: ClickHouseAddress) -> None:
        try:
            import clickhouse_connect
        except ImportError as error:
            raise UsageError(_INSTALL) from error
        self.address = address
        self._client: Client = self._try(
            lambda: clickhouse_connect.get_client(
                host=address.host,
                port=address.port,
                username=address.user,
                password=address.password,
                database=address.database,
                secure=address.secure,
                session_id=str(uuid4()),
                connect_timeout=10,
                send_receive_timeout=_SECONDS,
                client_name="clawtrace",
                settings=_SETTINGS,
            )
        )

    def run(self, sql: str, params: Mapping[str, Any] | None = None) -> None:
        """Run a statement that has no rows.

        Raises:
            ServerError: the server's words.
        """
        self._try(lambda: self._client.command(sql, parameters=dict(params or {})))

    def make_temporary(self, name: str, columns: str) -> None:
        """Make a table that only this session sees.

        Raises:
            StoreError: the user may not.
            ServerError: the server's words.
        """
        try:
            self.run(f"CREATE TEMPORARY TABLE {name} ({columns})")
        except ServerError as error:
            if not error.is_permission:
                raise
            user = self.address.user
            raise StoreError(
                f"the user {user!r} may not create temporary tables, which questions need: "
                f"GRANT CREATE TEMPORARY TABLE ON *.* TO {user} ({error})"
            ) from error

    def rows(
        self, sql: str, params: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return the names of the columns and the rows of a query.

        Raises:
            ServerError: the server's words.
        """
        # Of an answer without rows the native form does not say the columns.
        given, more = dict(params or {}), _JSON | dict(settings or {})
        answer = json.loads(self._try(lambda: self._client.raw_query(sql, given, more, fmt="JSONCompact")))
        of_floats = [place for place, column in enumerate(answer["meta"]) if "Float" in column["type"]]
        for row in answer["data"] if of_floats else ():  # JSON writes 8.0 as 8
            for place in of_floats:
                row[place] = float(row[place]) if isinstance(row[place], int) else row[place]
        return tuple(column["name"] for column in answer["meta"]), list(map(tuple, answer["data"]))

    def value(self, sql: str, params: Mapping[str, Any] | None = None) -> Any:
        """Return the only value of a query."""
        return self.rows(sql, params)[1][0][0]

    def blocks(self, sql: str) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield the rows of a query as they come, some at a time.

        Raises:
            ServerError: the server's words.
        """
        with self._try(lambda: self._client.query_row_block_stream(sql)) as stream:
            blocks = iter(stream)
            while (block := self._try(lambda: next(blocks, None))) is not None:
                yield block

    def insert_arrow(self, table: str, stream: Any) -> None:
        """Append rows that anything with ``__arrow_c_stream__`` gives, by column name.

        Raises:
            ServerError: the server's words.
        """
        from nanoarrow import Schema, c_array_stream
        from nanoarrow.ipc import StreamWriter

        source = c_array_stream(stream)
        names = [field.name for field in Schema(source.get_schema()).fields]
        for rows in source:
            content = io.BytesIO()
            with StreamWriter.from_writable(content) as writer:
                writer.write_stream(rows)
            self._try(partial(self._client.raw_insert, table, names, content.getvalue(), fmt="ArrowStream"))

    def insert_rows(
        self, table: str, names: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> None:
        """Append rows.

        Raises:
            ServerError: the server's words.
        """
        self._try(lambda: self._client.insert(table, rows, column_names=names, column_type_names=types))

    def close(self) -> None:
        """Close the connection; the server drops the session's tables after the idle time."""
        self._client.close()

    def _try(self, call: Callable[[], T]) -> T:
        from clickhouse_connect.driver.exceptions import ClickHouseError

        try:
            return call()
        except ClickHouseError as error:
            code = getattr(error, "code", None) or 0
            raise ServerError(self._said(str(error), code), code) from error

    def _said(self, text: str, code: int) -> str:
        """Return what an error means, with the server's words."""
        if code == _WRONG_USER:
            return (
                f"{self.address} does not let the user {self.address.user!r} in: the name or the password is wrong (the "
                f"password is read from {PASSWORD}, or from the URL)"
            )
        if code == _NO_DATABASE:
            return f"{self.address.host}:{self.address.port} has no database {self.address.database!r}: {text}"
        if code:
            return f"{self.address} refused a statement: {text}"
        return f"{self.address} does not answer as a ClickHouse server on its HTTP port (8123, with TLS 8443): {text}"

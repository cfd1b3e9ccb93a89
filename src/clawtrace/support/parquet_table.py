"""Columns of values as one Parquet file, written by DuckDB."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["ColumnType", "memory_database", "write_table"]

ColumnType = Literal["text", "bigint", "double", "boolean"]


class _TypedColumns:
    """What DuckDB scans: Arrow's PyCapsule interface."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import nanoarrow as na

        return na.c_array_stream(self._array).__arrow_c_stream__(requested_schema)


def memory_database() -> DuckDBPyConnection:
    """Return a DuckDB in memory; it shows no progress of a long statement, which would stand in what a command prints."""
    import duckdb

    return duckdb.connect().execute("SET enable_progress_bar = false")


def write_table(columns: Mapping[str, tuple[ColumnType, Sequence[Any]]], stream: BinaryIO) -> None:
    """Write columns of the same length, of which there is at least one; None is NULL.

    Raises:
        OSError: there is no room.
    """
    import nanoarrow as na

    types = {"text": na.string(), "bigint": na.int64(), "double": na.float64(), "boolean": na.bool_()}
    arrays = {name: na.c_array(map(_whole, values), types[kind]) for name, (kind, values) in columns.items()}
    schema = na.struct({name: array.schema for name, array in arrays.items()})
    length = len(next(iter(columns.values()))[1])
    rows = _TypedColumns(na.c_array_from_buffers(schema, length, [None], children=list(arrays.values())))
    with TemporaryDirectory() as folder, memory_database() as engine:
        path = Path(folder) / "table.parquet"
        engine.register("columns_of_values", rows)
        engine.execute("COPY columns_of_values TO ? (FORMAT parquet, COMPRESSION zstd)", [str(path)])
        with path.open("rb") as file:
            shutil.copyfileobj(file, stream)


def _whole(value: Any) -> Any:
    """Return a text as UTF-8 can carry it: a lone surrogate has no form there."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value

"""The tables of a store, and whether a file holds those that this version reads."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from clawtrace import __version__
from clawtrace.errors import StoreSchemaError
from clawtrace.model.relations import RELATIONS
from clawtrace.store.files.failures import as_store_errors

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["SCHEMA_VERSION", "create_tables", "holds_store", "renew"]

SCHEMA_VERSION = 1
"""Raised when an old file cannot be read: 1 is the first."""

_SQL = Path(__file__).parents[1] / "sql"
_DUCK_TYPES = {"text": "VARCHAR", "bigint": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN"}
_TEXT_COMPRESSION = " USING COMPRESSION dict_fsst"
"""For texts of relations that queries compare and group by: with zstd a query costs 40 % more."""


def holds_store(db: DuckDBPyConnection, path: str) -> bool:
    """Return whether the file holds a store of this version; False where it holds no table at all.

    Raises:
        StoreSchemaError: it holds something else, or a store of another version.
        StoreError: it cannot be read.
    """
    with as_store_errors(path):
        tables = {row[0] for row in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if tables and "store_meta" not in tables:
            raise StoreSchemaError(
                f"{path!r} is a DuckDB file but not a clawtrace store; name another file with --store."
            )
        found = db.execute("SELECT max(schema_version) FROM store_meta").fetchone() if tables else (SCHEMA_VERSION,)
    if found is None or found[0] != SCHEMA_VERSION:
        raise StoreSchemaError(
            f"{path!r} has store schema {found and found[0]}, this clawtrace reads {SCHEMA_VERSION}: "
            "open it with the version that wrote it, name another file, or move it away; a campaign then runs its agents anew."
        )
    return bool(tables)


def create_tables(db: DuckDBPyConnection, path: str) -> None:
    """Create every table in an empty database, all or none.

    Raises:
        StoreError: they cannot be created.
    """
    origin = f"INSERT INTO store_meta VALUES ({SCHEMA_VERSION}, 'clawtrace {__version__}')"
    # Of the journal: the store's id, and the last group that is in the tables.
    journal = "CREATE TABLE journal_state (store_id VARCHAR NOT NULL, moved BIGINT NOT NULL)"
    begun = f"INSERT INTO journal_state VALUES ('{secrets.token_hex(8)}', 0)"
    with as_store_errors(path, "set up"):
        db.execute(";\n".join(("BEGIN", *_definitions(), origin, journal, begun, "COMMIT")))


def renew(db: DuckDBPyConnection, path: str) -> None:
    """Replace relations whose columns differ from this version's by empty ones; facts are computed again from raw rows.

    Raises:
        StoreError: they cannot be created; the file is as it was.
    """
    columns = "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() WHERE NOT internal GROUP BY ALL"
    with as_store_errors(path, "migrate"):
        held = dict(db.execute(columns).fetchall())
        if any(held.get(name) != list(RELATIONS[name].column_names) for name in _computed()):
            dropped = [f"DROP TABLE IF EXISTS {name}" for name in _computed()]
            db.execute(
                ";\n".join(("BEGIN", *dropped, *map(_relation, _computed()), "DELETE FROM fact_state", "COMMIT"))
            )


def _definitions() -> list[str]:
    files = [(_SQL / f"{name}.sql").read_text(encoding="utf-8").rstrip().rstrip(";") for name in _files()]
    return files + [_relation(name) for name in _computed()]


def _files() -> list[str]:
    return (_SQL / "_order").read_text(encoding="utf-8").split()


def _computed() -> list[str]:
    """Return the relations that are tables; the others are views of what is kept."""
    files = _files()
    return [name for name in RELATIONS if name not in files]


def _relation(name: str) -> str:
    columns = ", ".join(
        f"{column.name} {_DUCK_TYPES[column.type]}{_TEXT_COMPRESSION if column.type == 'text' else ''}"
        for column in RELATIONS[name].columns
    )
    return f"CREATE TABLE {name} ({columns})"

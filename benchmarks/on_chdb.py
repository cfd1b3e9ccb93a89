"""The relations of a store on ClickHouse's engine: what DuckDB holds, asked again there with the same texts.

The engine is chDB, which only tests need: it runs in a separate process (`tests/chdb_store.py`). The rows go over in
Parquet files, the tables are MergeTree ordered by run.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import duckdb

from clawtrace.model.relations import RELATIONS

__all__ = ["filled_chdb", "need_chdb"]

TESTS = Path(__file__).parents[1] / "tests"


def need_chdb() -> None:
    """End with a sentence where chDB is not installed."""
    if importlib.util.find_spec("chdb") is None:
        sys.exit("chDB (ClickHouse's engine) is not installed here: python -m pip install chdb")


def filled_chdb(facts: Path) -> Any:
    """Return a store on chDB that holds the relations of a DuckDB file, which no process has open."""
    sys.path.insert(0, str(TESTS))
    from chdb_store import ChdbStore

    store = ChdbStore("MergeTree ORDER BY run_id")
    with duckdb.connect(str(facts), read_only=True) as db:
        for name, relation in RELATIONS.items():
            file = facts.with_name(f"{name}.parquet")
            db.execute(f"COPY (SELECT {', '.join(relation.column_names)} FROM {name}) TO '{file}' (FORMAT parquet)")
            store.fill(name, file)
            file.unlink()
    return store

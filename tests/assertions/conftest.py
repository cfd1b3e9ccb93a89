"""Two stores that answer every assertion of these tests: DuckDB in the process, ClickHouse's engine next to it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from assertion_facts import DuckFacts

from chdb_store import ChdbStore


@pytest.fixture(scope="session")
def chdb():
    store = ChdbStore()
    yield store
    store.close()


@pytest.fixture
def duck():
    store = DuckFacts()
    yield store
    store.close()


@pytest.fixture(params=["duckdb", pytest.param("clickhouse", marks=pytest.mark.needs("chdb"))])
def facts(request):
    """A store whose relations a test fills with `load`."""
    return request.getfixturevalue("duck" if request.param == "duckdb" else "chdb")

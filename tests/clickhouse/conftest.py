"""One ClickHouse server for all tests of the process; each takes a separate database."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clawtrace.cli.main import cli

sys.path.insert(0, str(Path(__file__).parent))


DATABASE = "otel"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A server with the Collector's tables, empty."""
    from clickhouse_tables import ClickHouseServer

    started = ClickHouseServer(tmp_path_factory.mktemp("clickhouse"))
    started.make_tables(DATABASE)
    yield started
    started.stop()


@pytest.fixture
def database(server) -> Iterator[str]:
    """The database with the Collector's tables, empty, and none of clawtrace's own."""
    yield DATABASE
    server.run(
        "TRUNCATE TABLE otel_traces", "TRUNCATE TABLE otel_logs", "DROP DATABASE IF EXISTS clawtrace", database=DATABASE
    )


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run the program in this process, in an empty folder that is no project."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> Result:
        return CliRunner().invoke(cli, [str(arg) for arg in args], prog_name="clawtrace")

    return call

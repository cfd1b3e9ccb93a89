"""Who may read what commands write, with the umask that most users have."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from exported import export
from running import Running, clawtrace

pytestmark = pytest.mark.full

AGENT = """
from pathlib import Path
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
with provider.get_tracer("test").start_as_current_span("work"):
    Path("made-by-agent").write_text("x")
"""


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """The permissions of a folder and of all that is in it, in octal, by path."""
    found = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder.parent)): f"{path.lstat().st_mode & 0o777:o}" for path in found}


def test_the_files_of_a_store_are_for_its_user_alone(tmp_path) -> None:
    """DuckDB makes the log again after each checkpoint; the folder that is there already stays as it is."""
    running = Running(tmp_path, "--store", "spans.duckdb")
    export(running.http, "search")
    seen = {path.name for path in tmp_path.iterdir()}
    before = modes(tmp_path)
    running.client.list_runs()
    made_again = modes(tmp_path)
    running.end()
    judged = running.clawtrace("inspect", "--store", "spans.duckdb")
    after = modes(tmp_path)

    assert {"spans.duckdb", "spans.duckdb.journal", "spans.duckdb.owner"} <= seen
    assert f"{tmp_path.name}/spans.duckdb.wal" in made_again
    for found in (before, made_again, after):
        folder = found.pop(tmp_path.name)
        assert set(found.values()) == {"600"}, found
        assert folder != "600"
    assert judged.returncode == 0, judged.stderr


def test_results_are_private_and_what_the_user_names_is_not(tmp_path) -> None:
    """The store, pages and results of a suite; project, reports by name and files of the agent have the user's permissions."""
    (tmp_path / "agent.py").write_text(AGENT)
    agent = f"{sys.executable} {tmp_path / 'agent.py'}"
    project = clawtrace(tmp_path, "init", "--command", agent, "--message", "hello", "--yes")
    judged = clawtrace(tmp_path, "eval", "--suite", "first", "--no-reuse", "--report", "json=named/r.json")
    results = modes(tmp_path / "outputs")
    named = {**modes(tmp_path / "named"), **modes(tmp_path / "configs")}

    assert judged.returncode in (0, 3), project.stderr + judged.stderr
    assert any(path.endswith("/report.html") for path in results)
    assert any(path.endswith("/spans.duckdb") for path in results)
    readable = [(Path(path).name, mode) for path, mode in results.items() if mode not in ("600", "700")]
    assert set(readable) == {("workspace", "755")}, "the agent's folder, below one that is private"
    assert {path: mode for path, mode in named.items() if mode not in ("644", "755")} == {}
    assert modes(tmp_path / "made-by-agent") == {"made-by-agent": "644"}

"""What `clawtrace eval` of a recording loads: nothing that this command does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

UNUSED = {
    "asyncio", "concurrent", "difflib", "fastapi", "genai_prices", "google", "grpc", "h11", "http", "httpx",
    "jinja2", "jsonschema_rs", "logging", "multiprocessing", "numpy", "opentelemetry", "pandas", "pyarrow", "regex",
    "requests", "rich", "sqlite3", "ssl", "starlette", "unittest", "xml",
}  # fmt: skip
"""Top-level packages that a passing evaluation of JSON with `--quiet` has no use for."""

UNUSED_OWN = {
    "clawtrace.campaign", "clawtrace.config.suites.suite", "clawtrace.receiver.decode.protobuf", "clawtrace.receiver.transport.grpc_server",
    "clawtrace.receiver.transport.ports", "clawtrace.receiver.receiver", "clawtrace.report.json_report",
    "clawtrace.report.junit", "clawtrace.report.tree", "clawtrace.runners.command",
}  # fmt: skip


def test_a_quiet_evaluation_loads_only_what_it_uses(tmp_path: Path) -> None:
    """One type asked: its module alone, no server, no report format, no drawing."""
    span = {
        "traceId": "0" * 31 + "7",
        "spanId": "0" * 15 + "1",
        "name": "a",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
    }
    trace = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    (tmp_path / "checks.yaml").write_text("assertions: [{type: trace_duration, max_ms: 9}]\n")
    code = (
        # The command leaves without finalising the interpreter; here it must come back, to be asked what it loaded.
        "import os, sys\n"
        "os._exit = sys.exit\n"
        "from clawtrace.cli.main import main\n"
        "sys.argv = 'clawtrace eval --traces trace.json --assertions checks.yaml --quiet'.split()\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "print(*sorted(sys.modules), sep='\\n', file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    loaded = done.stderr.split()

    assert "duckdb" in loaded
    assert sorted({name.split(".")[0] for name in loaded} & UNUSED) == []
    assert [name for name in loaded if any(f"{name}.".startswith(f"{own}.") for own in UNUSED_OWN)] == []
    types = [name for name in loaded if name.startswith("clawtrace.assertions.builtin.")]
    assert types == ["clawtrace.assertions.builtin.trace_duration"]

"""How many files and functions one span and one assertion touch, by a profiler's count: ``python benchmarks/touched.py``.

``--source FOLDER`` counts another version: the ``src`` of a worktree of an earlier commit, with the same libraries.
A file counts when one of its functions ran the second time that the command runs: imports and class bodies do not count.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parent.parent
SPAN = {
    "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "execute_tool search",
    "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000100000000",
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
        {"key": "gen_ai.tool.name", "value": {"stringValue": "search"}},
    ],
}  # fmt: skip
COMMANDS = {
    "one span, `clawtrace inspect`": ["inspect", "one.otlp.jsonl"],
    "one span and one assertion, `clawtrace eval`": [
        "eval",
        "--traces",
        "one.otlp.jsonl",
        "--assertions",
        "assertions.yaml",
    ],
}


def touched(arguments: list[str], source: Path) -> tuple[int, int, int]:
    """Return how many files and functions of the package ran, and the exit code."""
    from clawtrace.cli.main import cli

    run(cli, arguments)  # so that nothing is imported while it counts
    functions: set[tuple[str, str]] = set()
    below = f"{source / 'clawtrace'}{os.sep}"

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(below) and code.co_name != "<module>":
            functions.add((code.co_filename, code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        code = run(cli, arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return len({file for file, _ in functions}), len(functions), code


def run(cli: Any, arguments: list[str]) -> int:
    """Run a command in this process without a word; return its exit code."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cli.main(arguments, standalone_mode=False)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def main() -> None:
    """Print the counts, each taken in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=ROOT / "src")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    source = options.source.resolve()
    if options.one:
        print(*touched(COMMANDS[options.one], source))
        return
    with tempfile.TemporaryDirectory() as folder:
        spans = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "touched"}, "spans": [SPAN]}]}]}
        Path(folder, "one.otlp.jsonl").write_text(json.dumps(spans) + "\n")
        Path(folder, "assertions.yaml").write_text(
            "schema_version: 1\nassertions: [{type: tool_sequence, expected: [search]}]\n"
        )
        for name in COMMANDS:
            command = [sys.executable, str(Path(__file__).resolve()), "--source", str(source), "--one", name]
            environment = {**os.environ, "PYTHONPATH": str(source)}
            done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
            files, functions, code = done.stdout.split()
            print(f"{name}: {files} files, {functions} functions (exit code {code})")
    lines = [path.read_text(encoding="utf-8").count("\n") for path in source.rglob("*.py")]
    print(f"{sum(lines)} lines of Python in {len(lines)} files")


if __name__ == "__main__":
    main()

"""`expect.pyi`: what the assertions accept is well typed, and a wrong name or value is a type error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clawtrace import expect
from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.assertions.reference import reference
from clawtrace.assertions.registry import all_types, parse_assertion

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
CASES = (ROOT / "tests" / "assertions" / "cases", ROOT / "tests" / "assertions" / "probe_cases")

WRONG = [
    ("expect.tool_sequnce(['a'])", "attr-defined"),
    ("from clawtrace.expect import tool_sequnce", "attr-defined"),
    ("tool_sequence(['a'], mod='strict')", "call-arg"),
    ("tool_sequence(['a'], mode='strikt')", "arg-type"),
    ("tool_sequence('a')", "arg-type"),
    ("tool_sequence([1])", "list-item"),
    ("tool_sequence(['a'], 'strict')", "misc|call-arg"),
    ("tool_sequence(steps=['a', {'repeat': 'b', 'mxa': 3}])", "list-item|typeddict"),
    ("expect.tool_call()", "call-arg"),
    ("expect.llm_call_count(max='3')", "arg-type"),
    ("expect.no_loops(severity='warning')", "arg-type"),
    ("expect.no_loops(expect='pass')", "arg-type"),
    ("clawtrace.capture().check(expect.no_loops()).statos", "attr-defined"),
    ("clawtrace.Status.PASSED", "attr-defined"),
]
"""What a type checker must report, with the code of the error."""

HEAD = "import clawtrace\nfrom clawtrace import expect\nfrom clawtrace.expect import tool_sequence\n"


def written() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every valid assertion of the cases and of the pages: its type and its fields."""
    for cls in all_types().values():
        (entry,) = yaml.safe_load(reference(cls).example)
        yield entry.pop("type"), entry
    for path in (path for folder in CASES for path in sorted(folder.glob("*.yaml"))):
        cases = yaml.safe_load(path.read_text())
        for case in () if "elsewhere" in cases else cases:
            fields = {key: value for key, value in case["assert"].items() if key != "type"}
            try:
                parse_assertion({"type": path.stem, **fields})
            except InvalidAssertionError:
                continue
            yield path.stem, fields


def type_errors(folder: Path, text: str) -> dict[int, str]:
    """Return the errors that mypy finds, by line."""
    file = folder / "checked.py"
    file.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", "--no-error-summary", str(file)]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[int, str] = {}
    for line in done.stdout.splitlines():
        where = re.match(r"checked\.py:(\d+): (error|note): (.*)", line)
        assert where, done.stdout + done.stderr
        if where[2] == "error":
            found[int(where[1])] = f"{found.get(int(where[1]), '')}{where[3]}\n"
    return found


def test_types_accept_what_is_valid_and_refuse_what_is_wrong(tmp_path: Path) -> None:
    """Every assertion of the cases is well typed; each mistake is one error, of the right kind."""
    right = [f"expect.{name}({', '.join(f'{key}={value!r}' for key, value in of.items())})" for name, of in written()]
    lines = [*HEAD.splitlines(), *right, *(line for line, _ in WRONG)]
    found = type_errors(tmp_path, "\n".join(lines) + "\n")
    first = len(lines) - len(WRONG) + 1

    assert len(right) > 500
    assert {lines[number - 1]: said for number, said in found.items() if number < first} == {}
    for number, (line, code) in enumerate(WRONG, first):
        assert re.search(rf"\[(?:{code})", found.get(number, "")), (line, found.get(number))


def test_every_built_in_type_is_in_the_stub() -> None:
    """The functions of the stub are those of the module."""
    stub = (ROOT / "src" / "clawtrace" / "expect.pyi").read_text()
    functions = set(re.findall(r"^def (\w+)\(", stub, re.MULTILINE))

    assert functions | {"spans", "Spans"} == set(dir(expect))

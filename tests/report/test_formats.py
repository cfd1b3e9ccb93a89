"""A format is one module: found by walking the package, and a stranger to assertions."""

import ast
from pathlib import Path

from clawtrace import report
from clawtrace.report.base import formats

ROOM = Path(report.__file__).parent


def test_formats_are_found() -> None:
    """The formats that exist are found by their names, without a list anywhere."""
    assert formats().keys() >= {"json", "junit"}
    assert all(cls.format == name for name, cls in formats().items())
    assert all(cls.__doc__ for cls in formats().values())


def test_no_reporter_imports_an_assertion() -> None:
    """No module of the room imports an assertion or a store: the verdict carries all that a report needs."""
    for path in ROOM.glob("*.py"):
        for found in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [found.module or ""] if isinstance(found, ast.ImportFrom) else []
            names += [alias.name for alias in found.names] if isinstance(found, ast.Import) else []
            assert not [n for n in names if n.startswith(("clawtrace.assertions", "clawtrace.store"))], path.name

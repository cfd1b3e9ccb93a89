"""A class name stands for one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import clawtrace

SOURCE = Path(clawtrace.__file__).parent


def test_no_class_name_is_used_twice() -> None:
    named: dict[str, list[str]] = defaultdict(list)
    for file in SOURCE.rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                named[node.name].append(file.relative_to(SOURCE).as_posix())

    assert len(named) > 600
    assert {name: files for name, files in named.items() if len(files) > 1} == {}

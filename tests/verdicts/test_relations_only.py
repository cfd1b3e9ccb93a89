"""Verdicts read relations: what one may ask, and no table of a store's own (ARCHITECTURE.md)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import clawtrace.verdicts
from clawtrace.model.relations import RELATIONS

_READ = re.compile(r"\b(?:FROM|JOIN)\s+([a-z_]+)\b(?!\s*\()")
ALLOWED = {*RELATIONS, "selected_runs", "shown_spans", "wanted_runs", "owners"}
"""Besides relations: what a question is bound to, and a table expression of `inspect`."""


def test_the_sql_of_verdicts_names_relations_only() -> None:
    folder = Path(clawtrace.verdicts.__path__[0])
    read = {
        (name, f"{file.relative_to(folder)}:{node.lineno}")
        for file in folder.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for name in _READ.findall(node.value)
    }
    assert {name for name, _ in read} >= {"runs", "spans"}
    assert sorted((name, where) for name, where in read if name not in ALLOWED) == []

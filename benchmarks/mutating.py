"""Small changes to Python code, and processes that run with one of them: what mutants.py is made of."""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.abc
import importlib.util
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SQL = (
    (" <= ", " < "), (" >= ", " > "), (" < ", " <= "), (" > ", " >= "), (" = ", " <> "), (" AND ", " OR "), (" OR ", " AND "),
    ("min(", "max("), ("max(", "min("), (" IS NULL", " IS NOT NULL"), (" IS NOT NULL", " IS NULL"), ("NOT EXISTS", "EXISTS"),
    (" NOT IN ", " IN "), (" LEFT JOIN ", " JOIN "), (" + ", " - "), (" - ", " + "), ("ELSE true", "ELSE false"),
    ("ELSE false", "ELSE true"),
)  # fmt: skip
IS_SQL = re.compile(r"\b(SELECT|WHERE|CASE WHEN|AND|FROM)\b")
NOT_CHANGED = (ast.Raise, ast.Assert)


Place = tuple[tuple[str, int | None], ...]
"""Names of fields, each with the number in its list."""


class Mutant(NamedTuple):
    """One change to a module."""

    file: str
    """Below the package."""
    line: int
    id: str
    """``facts/calls/tree/walk.py walk: a < b → a <= b``: stays the same while other lines change."""
    lines: tuple[int, ...]
    """Those on which coverage may note it: of the node, and the first of its statement."""
    path: Place
    """The way to the changed node from the root of the tree."""
    new: ast.AST

    def tree(self, package: Path) -> ast.Module:
        """Return the whole module with the change."""
        tree = ast.parse((package / self.file).read_text(encoding="utf-8"))
        _replace(tree, self.path, self.new)
        return ast.fix_missing_locations(tree)

    @property
    def module(self) -> str:
        """The module's name."""
        name = self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return f"clawtrace.{name}"


def mutants(package: Path, file: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, in the order of its lines."""
    tree = ast.parse((package / file).read_text(encoding="utf-8"))
    seen = Counter[str]()
    for path, scope, statement in _places(tree, (), "", 0):
        node = _at(tree, path)
        if not scope and isinstance(node, ast.Constant) and type(node.value) is int:
            continue  # a limit, or the number of a case: one more is as good
        for old, new in _changes(node):
            name = f"{file} {scope or 'module'}: {_change(old, new)}"
            seen[name] += 1
            again = f" #{seen[name]}" if seen[name] > 1 else ""
            first, last = getattr(old, "lineno", statement), getattr(old, "end_lineno", statement)
            yield Mutant(file, first, name + again, tuple(sorted({statement, *range(first, last + 1)})), path, new)


def _places(node: ast.AST, path: Place, scope: str, statement: int) -> Iterator[tuple[Place, str, int]]:
    """Yield the way to each node whose meaning can be changed, the function that it stands in, and its statement's line."""
    if isinstance(node, NOT_CHANGED) or _worded(node) or _key_of_bisect(node):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        scope = f"{scope}.{node.name}".lstrip(".")
    if isinstance(node, ast.stmt):
        statement = node.lineno
    if path:
        yield path, scope, statement
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "format_spec"):
            continue
        if isinstance(node, ast.If) and name == "test" and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        for number, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not _docstring(child) and not _declared(node, name):
                yield from _places(child, (*path, (name, number)), scope, statement)


def _docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _worded(node: ast.AST) -> bool:
    """Whether it is a text with values in it for people: tests compare ids, not prose."""
    return isinstance(node, ast.JoinedStr) and not IS_SQL.search(ast.unparse(node))


def _key_of_bisect(node: ast.AST) -> bool:
    """Whether it only cuts a sorted list: what fills the key up is a number below, or above, all others."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("bisect")


def _declared(node: ast.AST, name: str) -> bool:
    """Whether it is a list of names, a word of typing, or a guard that no correct code can meet."""
    if isinstance(node, ast.Assign) and name == "value":
        return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    if isinstance(node, ast.keyword):
        return node.arg == "strict"  # of zip: guards against an error elsewhere
    return isinstance(node, ast.Subscript) and name == "slice" and ast.unparse(node.value) in ("Literal", "Annotated")


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield what a node may become."""
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            operators = [*node.ops[:number], COMPARISONS[type(operator)](), *node.ops[number + 1 :]]
            yield node, ast.copy_location(ast.Compare(node.left, operators, node.comparators), node)
    elif isinstance(node, ast.BoolOp):
        operator = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, ast.copy_location(ast.BoolOp(operator, node.values), node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, node.operand
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        sign = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield node, ast.copy_location(ast.BinOp(node.left, sign, node.right), node)
    elif isinstance(node, ast.Continue):
        yield node, ast.copy_location(ast.Break(), node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, ast.copy_location(ast.Pass(), node)
    elif isinstance(node, ast.Constant):
        for value in _values(node.value):
            yield node, ast.copy_location(ast.Constant(value), node)


def _values(value: object) -> Iterator[object]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, str) and IS_SQL.search(value):
        for old, new in SQL:
            start = value.find(old)
            while start >= 0:
                yield value[:start] + new + value[start + len(old) :]
                start = value.find(old, start + len(old))


def _change(old: ast.AST, new: ast.AST) -> str:
    """Return both, a text only around the change."""
    if isinstance(old, ast.Constant) and isinstance(old.value, str) and isinstance(new, ast.Constant):
        before, after = old.value, str(new.value)
        start = _alike(before, after)
        rest = _alike(before[start:][::-1], after[start:][::-1])
        texts = (" ".join(text[max(0, start - 30) : len(text) - max(0, rest - 30)].split()) for text in (before, after))
        return " → ".join(texts)
    return f"{_short(old)} → {_short(new)}"


def _alike(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else f"{text[:38]} … {text[-38:]}"


def _at(tree: ast.AST, path: Place) -> ast.AST:
    for name, number in path:
        found = getattr(tree, name)
        tree = found if number is None else found[number]
    return tree


def _replace(tree: ast.AST, path: Place, new: ast.AST) -> None:
    *above, (name, number) = path
    holder = _at(tree, tuple(above))
    if number is None:
        setattr(holder, name, new)
    else:
        getattr(holder, name)[number] = new


# Processes ------------------------------------------------------------------------------------


class _Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from the text of a mutant."""

    def __init__(self, mutant: Mutant, package: Path) -> None:
        self.tree, self.file, self.name = mutant.tree(package), package / mutant.file, mutant.module

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find the mutated module."""
        del path, target
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(
            name,
            self.file,
            loader=self,
            submodule_search_locations=[str(self.file.parent)] if self.file.stem == "__init__" else None,
        )

    def create_module(self, spec: ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed text."""
        exec(compile(self.tree, str(self.file), "exec", dont_inherit=True), vars(module))


def put_in_place(mutant: Mutant) -> None:
    """Load the mutant in place of its module; before pytest, which loads the modules of its plugins in another way."""
    assert not any(name.startswith("clawtrace") for name in sys.modules), "the package is loaded already"
    loader = _Loader(mutant, Path(__file__).parent.parent / "src" / "clawtrace")
    sys.meta_path.insert(0, loader)
    importlib.import_module(loader.name)


def patch(mutant: Mutant, package: Path) -> None:
    """Replace the code of the changed functions wherever they are held; load the mutant later where its module is not loaded yet.

    Raises:
        LookupError: the change is in no function that exists.
    """
    if mutant.module not in sys.modules:
        sys.meta_path.insert(0, _Loader(mutant, package))
        return
    file = str(package / mutant.file)
    before = _codes(compile((package / mutant.file).read_text(encoding="utf-8"), file, "exec", dont_inherit=True))
    after = _codes(compile(mutant.tree(package), file, "exec", dont_inherit=True))
    changed = {place: code for place, code in after.items() if code != before[place]}
    found = [
        function
        for function in gc.get_objects()
        if type(function) is FunctionType
        and function.__code__.co_filename == file
        and (function.__code__.co_qualname, function.__code__.co_firstlineno) in changed
    ]
    if not found:
        raise LookupError(mutant.id)
    for function in found:
        function.__code__ = changed[function.__code__.co_qualname, function.__code__.co_firstlineno]


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Return the code of all functions in some code, by their names and first lines."""
    found: dict[tuple[str, int], CodeType] = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found[inner.co_qualname, inner.co_firstlineno] = inner
            found |= _codes(inner)
    return found


def load_libraries() -> None:
    """Load what every test needs and no mutant changes, once for all children."""
    import duckdb  # noqa: F401
    import hypothesis  # noqa: F401
    import nanoarrow  # noqa: F401
    import pydantic  # noqa: F401
    import pytest  # noqa: F401


def in_child(work: Callable[[], int], seconds: float) -> int:
    """Run `work` in a forked process with a process group for itself; return its exit code, -1 where time ran out."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    end, code = time.monotonic() + seconds, None
    try:
        while code is None and time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            code = os.waitstatus_to_exitcode(status) if done else None
            time.sleep(0 if done else 0.01)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if code is None:
            os.waitpid(child, 0)
    return -1 if code is None else code

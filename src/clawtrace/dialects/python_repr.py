"""Read what Python's `repr` wrote of plain data and of objects that are made of it.

Some instrumentations record a program's objects so. Strings, numbers, lists, dicts and `Name(field=value)` have one meaning,
as JSON has; an object becomes its fields, a member of an enumeration its value. Anything else (a cut text, an
address in memory, a value without a literal) makes the whole unreadable: nothing is guessed.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

__all__ = ["as_json", "read_repr"]

_DEEPEST = 60
"""Levels that are read: no object of an agent has more, and Python's own recursion is not to decide."""

_TEXT = r"""'(?:[^'\\\n]|\\[nrtxuU'"\\])*'|"(?:[^"\\\n]|\\[nrtxuU'"\\])*\""""
_WHOLE_TEXT = re.compile(_TEXT)
_MEMBER = re.compile(rf"({_TEXT})|<[A-Za-z_][\w.]*:\s|>")
"""The ends of a member of an enumeration, `<Role.USER: 'user'>`, which alone are not Python; and texts, which may hold the like."""


def read_repr(text: str) -> Any:
    """Return the value that `text` represents: tuples as lists, objects as dicts of their fields.

    Raises:
        ValueError: it is no representation of data, or not a whole one.
    """
    if "\\" in _WHOLE_TEXT.sub("", text):
        raise ValueError("no escape of a representation")
    plain = _MEMBER.sub(lambda found: found[1] or (")" if found[0] == ">" else "("), text.strip())
    try:
        parsed = ast.parse(plain, mode="eval").body
    except (SyntaxError, MemoryError, RecursionError):
        raise ValueError("no representation of data") from None
    return _value(parsed, plain.encode("utf-8", "surrogatepass").split(b"\n"), 0)


def as_json(text: str | None) -> str | None:
    """Return a text, as JSON where it is what `repr` wrote of a dict with keys of text."""
    if text is None or not text.startswith("{'"):
        return text
    try:
        value = read_repr(text)
    except ValueError:
        return text
    return json.dumps(value) if isinstance(value, dict) and all(isinstance(key, str) for key in value) else text


def _value(node: ast.expr, lines: list[bytes], level: int) -> Any:
    if level > _DEEPEST:
        raise ValueError("nested too deeply")
    match node:
        case ast.Constant(value=str() as text) if _WHOLE_TEXT.fullmatch(_written(node, lines)):
            return text
        case ast.Constant(value=None | bool() as constant):
            return constant
        case ast.Constant(value=int() | float() as number) if len(_written(node, lines)) == len(repr(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=inner) | ast.Tuple(elts=inner):
            return [_value(one, lines, level + 1) for one in inner]
        case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant | ast.UnaryOp) for key in keys):
            names = [_value(key, lines, level + 1) for key in keys if key is not None]
            return dict(zip(names, [_value(one, lines, level + 1) for one in values], strict=True))
        case ast.Call(func=ast.Name() | ast.Attribute(), args=[], keywords=fields) if all(one.arg for one in fields):
            return {str(one.arg): _value(one.value, lines, level + 1) for one in fields}
    raise ValueError("no representation of data")


def _written(node: ast.Constant, lines: list[bytes]) -> str:
    """Return a literal as it is written: of two texts side by side, which `repr` does not write, both."""
    one_line = lines[node.lineno - 1] if node.lineno == node.end_lineno else b""
    return one_line[node.col_offset : node.end_col_offset].decode("utf-8", "surrogatepass")

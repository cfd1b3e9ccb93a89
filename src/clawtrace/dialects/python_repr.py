"""Read what Python's `repr` wrote of plain data and of objects that are made of it.

Some instrumentations record a program's objects so. Strings, numbers, lists, dicts and `Name(field=value)` have one meaning,
as JSON has; an object becomes its fields, a member of an enumeration its value. Anything else (a cut text, an
address in memory, a value without a literal) makes the whole unreadable: nothing is guessed.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["as_json", "read_repr"]

_DEEPEST = 60
"""Levels that are read: no object of an agent has more, and Python's own recursion is not to decide."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?(?![\w.]))
    |(?P<member><[A-Za-z_][\w.]*:\s)
    |(?P<name>[A-Za-z_][\w.]*)
    |(?P<mark>[][(){},:=>]))""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_CONSTANTS = {"None": None, "True": True, "False": False}
_CLOSING = {"[": "]", "(": ")", "{": "}"}


def read_repr(text: str) -> Any:
    """Return the value that `text` represents: tuples as lists, objects as dicts of their fields.

    Raises:
        ValueError: it is no representation of data, or not a whole one.
    """
    reader = _ReprReader(text)
    value = reader.value(0)
    if reader.at != len(text.rstrip()):
        raise ValueError("more follows the value")
    return value


def as_json(text: str | None) -> str | None:
    """Return a text, as JSON where it is what `repr` wrote of a dict with keys of text."""
    if text is None or not text.startswith("{'"):
        return text
    try:
        value = read_repr(text)
    except ValueError:
        return text
    return json.dumps(value) if isinstance(value, dict) and all(isinstance(key, str) for key in value) else text


class _ReprReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def _next(self) -> tuple[str, str]:
        """Return kind and text of the next token, and go on behind it."""
        found = _TOKEN.match(self._text, self.at)
        if found is None or found.lastgroup is None:
            raise ValueError("no representation of data")
        self.at = found.end()
        return found.lastgroup, found.group(found.lastgroup)

    def _sees(self, mark: str) -> bool:
        """Return whether that mark comes next, and go on behind it."""
        at = self.at
        if _TOKEN.match(self._text, at) and self._next() == ("mark", mark):
            return True
        self.at = at
        return False

    def value(self, level: int) -> Any:
        kind, token = self._next()
        if level > _DEEPEST:
            raise ValueError("nested too deeply")
        if kind == "text":
            return _ESCAPE.sub(_unescaped, token[1:-1])
        if kind == "number":
            return int(token) if token.lstrip("-").isdigit() else float(token)
        if kind == "member":
            value = self.value(level + 1)
            self._expect(">")
            return value
        if kind == "mark" and token in "[(":
            return self._list(_CLOSING[token], level)
        if kind == "mark" and token == "{":
            return self._dict(level)
        if kind == "name" and token in _CONSTANTS:
            return _CONSTANTS[token]
        if kind == "name" and self._sees("("):
            return self._object(level)
        raise ValueError("no representation of data")

    def _expect(self, mark: str) -> None:
        if not self._sees(mark):
            raise ValueError(f"{mark} is missing")

    def _list(self, closing: str, level: int) -> list[Any]:
        values: list[Any] = []
        while not self._sees(closing):
            values.append(self.value(level + 1))
            if not self._sees(","):
                self._expect(closing)
                break
        return values

    def _dict(self, level: int) -> dict[Any, Any]:
        values: dict[Any, Any] = {}
        while not self._sees("}"):
            key = self.value(level + 1)
            if isinstance(key, list | dict):
                raise ValueError("a key that is no name")
            self._expect(":")
            values[key] = self.value(level + 1)
            if not self._sees(","):
                self._expect("}")
                break
        return values

    def _object(self, level: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while not self._sees(")"):
            kind, name = self._next()
            if kind != "name":
                raise ValueError("a field without a name")
            self._expect("=")
            fields[name] = self.value(level + 1)
            if not self._sees(","):
                self._expect(")")
                break
        return fields


def _unescaped(found: re.Match[str]) -> str:
    code = found.group(1) or found.group(2) or found.group(3)
    if code is not None:
        return chr(int(code, 16))
    letter = found.group(4)
    if letter not in _ESCAPED:
        raise ValueError("no escape of a representation")
    return _ESCAPED[letter]

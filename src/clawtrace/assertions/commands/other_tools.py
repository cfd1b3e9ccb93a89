"""Calls of tools that are not known as shells, and were given a command all the same: what ran there is unknown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from clawtrace.assertions.matching.matchers import compile_regex
from clawtrace.model.query import Resolve

__all__ = ["resolve_other_tools"]

_NAMES = ("command", "cmd", "command_line", "commandLine", "shell_command", "bash_command")
"""Arguments that hold a command, as tools of agents name them."""
_GIVEN = " OR ".join(f"r.arguments LIKE '%\"{name}\"%'" for name in _NAMES)
_ENDS = re.compile(r"[;&|\n]+\s*")
"""What separates the commands of a compound one, wherever it is quoted: a part too many leaves a question open."""


def resolve_other_tools(pattern: str, calls: str) -> Resolve:
    """Decide once per distinct text of the arguments of `calls` that name a command whether the pattern is found in it."""
    find = compile_regex(pattern)

    def items(arguments: str) -> tuple[int, ...]:
        return (0,) if any(find(part) for text in _texts(arguments) for part in (text, *_ENDS.split(text))) else ()

    return Resolve("asked_arguments", calls, "arguments", items, _GIVEN)


def _texts(arguments: str) -> Iterator[str]:
    try:
        given: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return
    for name in _NAMES if isinstance(given, dict) else ():
        value = given.get(name)
        words = value if isinstance(value, list) else [value]
        if words and all(isinstance(word, str) for word in words):
            yield " ".join(words)

"""Calls of tools that are not known as shells, and were given a command all the same: what ran there is unknown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from clawtrace.assertions.commands.commands import NO_ANSWER, NO_NUMBER, OTHER_TOOL
from clawtrace.assertions.matching.matchers import compile_regex
from clawtrace.model.query import Resolve

__all__ = ["other_tools", "resolve_other_tools"]

_NAMES = ("command", "cmd", "command_line", "commandLine", "shell_command", "bash_command")
"""Arguments that hold a command, as tools of agents name them."""
_GIVEN = " OR ".join(f"r.arguments LIKE '%\"{name}\"%'" for name in _NAMES)
_ENDS = re.compile(r"[;&|\n]+\s*")
"""What separates the commands of a compound one, wherever it is quoted: a part too many leaves a question open."""


def other_tools(calls: str, commands: str) -> str:
    """Return SQL: a row for each call of a tool that is no known shell, and was given a command in which the pattern is found.

    Columns: those of `hits`, ``text`` being the tool's name, and ``span_id``.
    """
    return f"""
  SELECT u.run_id AS run_id, u.call_no AS call_no, 1 AS command_no, u.name AS text, {NO_NUMBER} AS exit_code,
         {NO_ANSWER} AS ok, u.certain AS certain, {NO_NUMBER} AS most, {OTHER_TOOL} AS kind, u.span_id AS span_id
  FROM {calls} AS u
  JOIN selected_runs AS v ON v.run_id = u.run_id
  LEFT JOIN {commands} AS o ON o.run_id = u.run_id AND o.tool_call_no = u.call_no AND o.command_no = 1
  WHERE u.arguments IN (SELECT a.value FROM asked_arguments AS a) AND o.run_id IS NULL AND u.name IS NOT NULL
    AND (u.outcome IS NULL OR u.outcome <> 'blocked')"""


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

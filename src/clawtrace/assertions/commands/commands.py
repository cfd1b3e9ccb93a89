"""Commands that a regular expression finds: the SQL that `ran`, `not_ran`, `run_count` and the selectors of results share.

A command that carries others (a compound one, `sudo a`, `sh -c 'a'`) is looked at as a whole and part by part. Where a
pattern is found in several of them that are inside one another, the innermost counts: a hit. Text that was not captured,
was redacted, or could not be split may hide a hit.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

from clawtrace.assertions.matching.matchers import compile_regex
from clawtrace.assertions.matching.redacted import holds_mark
from clawtrace.model.query import Resolve

__all__ = ["MATCH", "hits", "listed", "may_be", "other_calls", "resolve_commands", "resolve_other_tools", "shown"]

SHOWN = 2000
"""Characters of a command or of its output that a message shows."""

MATCH, NO_TEXT, UNSPLIT, REDACTED, OTHER_TOOL, NAMELESS = range(6)
"""The meaning of a row: a command that matches the pattern, or why it may."""

_NO_NUMBER, _NO_ANSWER = ("CASE WHEN 1 = 0 THEN u.call_no END", "CASE WHEN 1 = 0 THEN u.certain END")
"""SQL over a tool call ``u``: NULL, with a type: stores differ in the type that a bare one gets."""

_QUOTED = re.compile(r"\\[^AZzB]|\[\^?\]?[^\]]*\]")
_UNREAD = re.compile(r"""["'\\\t]|  """)
"""Characters that a shell interprets."""
_LONGEST_READ = 100_000
"""Longer text is looked at as it is written only, in characters: reading a megabyte takes a second."""
_ANCHORS = re.compile(r"[\^$]|\\[AZzB]|\(\?(?:=|!|<=|<!)")


def _anchored(pattern: str) -> bool:
    """Return whether a pattern may be found in a part of a text though it is not found in the whole."""
    return _ANCHORS.search(_QUOTED.sub("", pattern)) is not None


def resolve_commands(pattern: str, commands: str = "commands") -> tuple[Resolve, ...]:
    """Decide once per distinct text of `commands`: 0 the pattern is found in it, 1 it may be in what was redacted.

    A command is looked at as it is written, and as the shell reads it: `r""m  -rf x` is `rm -rf x`.
    """
    find = compile_regex(pattern)

    def items(text: str) -> tuple[int, ...]:
        if find(text) or ((read := _as_read(text)) != text and find(read)):
            return (0,)
        return (1,) if holds_mark(text) else ()

    return (Resolve("asked_command", commands, "text", items),)


def _as_read(text: str) -> str:
    """Return a command's words as its program gets them, one space between them; the text where it cannot be read so."""
    if len(text) > _LONGEST_READ or not _UNREAD.search(text):
        return text
    reader = shlex.shlex(text.replace("\\\n", ""), posix=True)
    # The end of a line ends a command: words on both sides of it are no neighbours.
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t", True, ""
    try:
        return " ".join(reader)
    except ValueError:
        return text


def command_fit(pattern: str) -> str:
    """Return SQL on a row ``c`` of commands: 1 the pattern is found, 2 it may be, 0 it is not."""
    unsplit = "WHEN c.last_no IS NULL THEN 2 " if _anchored(pattern) else ""
    return f"""CASE WHEN c.text IS NULL THEN 2
              WHEN c.text IN (SELECT m.value FROM asked_command AS m WHERE m.item = 0) THEN 1
              WHEN c.text IN (SELECT k.value FROM asked_command AS k WHERE k.item = 1) THEN 2 {unsplit}ELSE 0 END"""


def hits(pattern: str, commands: str = "commands") -> str:
    """Return SQL of the innermost of the `commands` in which the pattern is found, or may be.

    Columns: ``run_id, call_no, command_no, text, exit_code, ok, certain``; ``kind`` is MATCH, or why it may be one; ``most`` is 1,
    NULL where a text that was not captured or not split may hold more than this one.
    """
    return f"""
  SELECT n.run_id AS run_id, n.call_no AS call_no, n.command_no AS command_no, n.text AS text, n.exit_code AS exit_code, n.ok AS ok,
         n.certain AS certain, CASE WHEN n.last_no IS NOT NULL THEN 1 END AS most,
         CASE WHEN n.fit = 1 THEN {MATCH} WHEN n.text IS NULL THEN {NO_TEXT} WHEN n.last_no IS NULL THEN {UNSPLIT} ELSE {REDACTED} END AS kind
  FROM (
    SELECT f.run_id AS run_id, f.call_no AS call_no, f.command_no AS command_no, f.text AS text, f.exit_code AS exit_code,
           f.ok AS ok, f.certain AS certain, f.last_no AS last_no, f.fit AS fit,
           min(f.command_no) OVER (
             PARTITION BY f.run_id, f.call_no ORDER BY f.command_no ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
             AS next_no
    FROM (
      SELECT c.run_id AS run_id, c.tool_call_no AS call_no, c.command_no AS command_no, c.text AS text,
             c.exit_code AS exit_code, c.ok AS ok, c.certain AS certain, c.last_no AS last_no,
             {command_fit(pattern)} AS fit
      FROM {commands} AS c
      JOIN selected_runs AS s ON s.run_id = c.run_id
    ) AS f
    WHERE f.fit > 0
  ) AS n
  WHERE n.last_no IS NULL OR n.next_no IS NULL OR n.next_no > n.last_no"""


def shown(text: str) -> str:
    """Return a text at the length that a message shows."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def listed(text: str | None) -> str:
    """Return a command as a message shows it."""
    return "a command whose text was not captured" if text is None else f"`{shown(text)}`"


def other_calls(calls: str = "tool_calls", commands: str = "") -> str:
    """Return SQL of the `calls` that may have run a command, with the columns of `hits` and ``span_id``.

    They are those without a name, which may be a shell's; where relation `commands` is given also those of a tool that is no
    known shell, and was given a command in which the pattern is found (`resolve_other_tools`): ``text`` is the tool's name.
    """
    joined, which, kind = "", "u.name IS NULL", str(NAMELESS)
    if commands:
        joined = (
            f"\n  LEFT JOIN {commands} AS o ON o.run_id = u.run_id AND o.tool_call_no = u.call_no AND o.command_no = 1"
        )
        which += " OR (u.arguments IN (SELECT a.value FROM asked_arguments AS a) AND o.run_id IS NULL)"
        kind = f"CASE WHEN u.name IS NULL THEN {NAMELESS} ELSE {OTHER_TOOL} END"
    return f"""
  SELECT u.run_id AS run_id, u.call_no AS call_no, 1 AS command_no, u.name AS text, {_NO_NUMBER} AS exit_code,
         {_NO_ANSWER} AS ok, u.certain AS certain, {_NO_NUMBER} AS most, {kind} AS kind, u.span_id AS span_id
  FROM {calls} AS u
  JOIN selected_runs AS v ON v.run_id = u.run_id{joined}
  WHERE ({which}) AND (u.outcome IS NULL OR u.outcome <> 'blocked')"""


def may_be(kind: int, text: str | None) -> str:
    """Return why a row may be what is asked for, as a sentence without its full stop."""
    return {
        MATCH: f"{listed(text)} may not have run",
        NO_TEXT: "a command whose text was not captured may",
        UNSPLIT: f"{listed(text)} may: it could not be split into its simple commands",
        REDACTED: f"{listed(text)} may: parts of it were redacted",
        OTHER_TOOL: f"`{text}` was given a command that matches, and is not known as a shell",
        NAMELESS: "a tool call without a name may have been a shell's",
    }[kind]


_NAMES = ("command", "cmd", "command_line", "commandLine", "shell_command", "bash_command")
"""Arguments that hold a command, as tools of agents name them."""
_GIVEN = " OR ".join(f"r.arguments LIKE '%\"{name}\"%'" for name in _NAMES)
_ENDS = re.compile(r"[;&|\n]+\s*")
"""Separators of compound commands, even if quoted: a part too many only leaves a question open."""


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

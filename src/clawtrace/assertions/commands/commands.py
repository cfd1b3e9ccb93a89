"""Commands that a regular expression finds: the SQL that `ran`, `not_ran`, `run_count` and the selectors of results share.

A command that carries others (a compound one, `sudo a`, `sh -c 'a'`) is looked at as a whole and part by part. Where a
pattern is found in several of them that are inside one another, the innermost counts: a hit. Text that was not captured,
was redacted, or could not be split may hide a hit.
"""

from __future__ import annotations

import re
import shlex

from clawtrace.assertions.forms.sources import EVERY_COMMAND, EVERY_TOOL_CALL
from clawtrace.assertions.matching.matchers import compile_regex
from clawtrace.assertions.matching.redacted import holds_mark
from clawtrace.model.query import Resolve

__all__ = [
    "SHOWN",
    "command_evidence",
    "command_fit",
    "doubt",
    "hits",
    "listed",
    "resolve_commands",
    "shown",
    "why_unknown",
]

SHOWN = 2000
"""Characters of a command or of its output that a message shows."""

_QUOTED = re.compile(r"\\[^AZzB]|\[\^?\]?[^\]]*\]")
_UNREAD = re.compile(r"""["'\\\t]|  """)
"""What a shell reads otherwise than it is written."""
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
    """Return SQL of the innermost of the `commands` in which the pattern is found (``fit`` 1) or may be (2).

    Columns: ``run_id, call_no, command_no, text, whole, exit_code, ok, fit``, and ``open`` = 1 where a text that was not
    captured or not split may hold more than this one.
    """
    return f"""
  SELECT n.run_id AS run_id, n.call_no AS call_no, n.command_no AS command_no, n.text AS text, n.whole AS whole,
         n.exit_code AS exit_code, n.ok AS ok, n.fit AS fit,
         CASE WHEN n.last_no IS NULL THEN 1 ELSE 0 END AS open
  FROM (
    SELECT f.run_id AS run_id, f.call_no AS call_no, f.command_no AS command_no, f.text AS text, f.whole AS whole,
           f.exit_code AS exit_code, f.ok AS ok, f.fit AS fit, f.last_no AS last_no,
           min(f.command_no) OVER (
             PARTITION BY f.run_id, f.call_no ORDER BY f.command_no ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
             AS next_no
    FROM (
      SELECT c.run_id AS run_id, c.tool_call_no AS call_no, c.command_no AS command_no, c.text AS text,
             c.whole AS whole, c.exit_code AS exit_code, c.ok AS ok, c.last_no AS last_no,
             {command_fit(pattern)} AS fit
      FROM {commands} AS c
      JOIN selected_runs AS s ON s.run_id = c.run_id
    ) AS f
    WHERE f.fit > 0
  ) AS n
  WHERE n.last_no IS NULL OR n.next_no IS NULL OR n.next_no > n.last_no"""


def doubt(row: str) -> str:
    """Return SQL on a row of `hits` for the fact that is unknown where it is doubtful (``fit`` 2 or ``open`` 1)."""
    return f"""CASE WHEN {row}.text IS NULL THEN 'commands.text' WHEN {row}.open = 1 THEN 'commands.last_no'
                ELSE 'redaction' END"""


def why_unknown(missing: str) -> str:
    """Return why a text may match (`doubt`), as the end of a sentence; empty where it was not captured."""
    return {
        "commands.last_no": ": it could not be split into its simple commands",
        "redaction": ": parts of it were redacted",
    }.get(missing, "")


def command_evidence(pattern: str, *, everywhere: bool = False) -> str:
    """Return evidence SQL: the calls whose commands fit first, then those that may, then the others, by their number.

    Args:
        everywhere: whether work that a timer started is looked at, too.
    """
    calls, commands = (EVERY_TOOL_CALL, EVERY_COMMAND) if everywhere else ("tool_calls", "commands")
    return f"""
SELECT k.run_id AS run_id, k.span_id AS span_id, coalesce(h.text, w.text, '(a command that was not captured)') AS why,
       row_number() OVER (
         PARTITION BY k.run_id ORDER BY coalesce(h.fit, 3), k.call_no, coalesce(h.command_no, 1)) AS rank
FROM {calls} AS k
JOIN selected_runs AS q ON q.run_id = k.run_id
JOIN {commands} AS w ON w.run_id = k.run_id AND w.tool_call_no = k.call_no AND w.command_no = 1
LEFT JOIN ({hits(pattern, commands)}
) AS h ON h.run_id = k.run_id AND h.call_no = k.call_no
"""


def shown(text: str) -> str:
    """Return a text at the length that a message shows."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def listed(text: str | None) -> str:
    """Return a command as a message shows it."""
    return "a command whose text was not captured" if text is None else f"`{shown(text)}`"

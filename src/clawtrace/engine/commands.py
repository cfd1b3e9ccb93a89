"""Shell commands that tool calls ran: which tools are shells and where the command stands is dialect data.

Each command is one row as a whole (``simple`` false). Splitting a compound command into its simple ones needs a shell
parser and comes with the assertions that ask for them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from clawtrace.dialects import Dialect
from clawtrace.dialects.schema import ShellRule
from clawtrace.store.duckdb import DuckStore

__all__ = ["load_commands"]

_CALLS = """
SELECT t.run_id, t.call_no, t.name, t.arguments, t.result, coalesce(s.dialect, d.dialect)
FROM fact_tool_calls AS t
LEFT JOIN fact_spans AS s ON s.sid = t.sid
LEFT JOIN (
    SELECT run_no, min(dialect) AS dialect FROM fact_spans WHERE kind = 'llm' GROUP BY run_no
) AS d ON d.run_no = t.run_no
WHERE t.outcome NOT IN ('requested', 'blocked') AND t.arguments IS NOT NULL
ORDER BY t.run_no, t.call_no
"""


class _Command(NamedTuple):
    """One row of the relation `commands`."""

    run_id: str
    tool_call_no: int
    command_no: int
    text: str
    argv0: str | None
    whole: str
    exit_code: int | None
    stdout: str | None
    stderr: str | None
    output: str | None
    simple: bool


_TYPES = {"tool_call_no": "bigint", "command_no": "bigint", "exit_code": "bigint", "simple": "boolean"}


def load_commands(store: DuckStore, dialects: Mapping[str, Dialect]) -> None:
    """Load ``fact_commands`` from ``fact_tool_calls``."""
    shells = {name: dialect.file.shell for name, dialect in dialects.items()}
    rows = [
        command
        for run_id, call_no, tool, arguments, result, dialect in store.script(_CALLS)
        if (command := _command(run_id, call_no, shells.get(dialect, []), tool, arguments, result)) is not None
    ]
    store.load(
        "fact_commands",
        {name: (_TYPES.get(name, "text"), [getattr(row, name) for row in rows]) for name in _Command._fields},
    )


def _command(
    run_id: str, call_no: int, rules: Sequence[ShellRule], tool: str | None, arguments: str, result: str | None
) -> _Command | None:
    for rule in rules:
        if tool is None or not any(fnmatchcase(tool, glob) for glob in rule.tools):
            continue
        text = _text(_first(_loads(arguments), rule.command))
        if text:
            told = _loads(result)
            stdout, stderr = _text(_first(told, rule.stdout)), _text(_first(told, rule.stderr))
            apart = stdout is not None or stderr is not None
            code = _first(told, rule.exit_code)
            return _Command(
                run_id, call_no, 1, text, _program(text), text,
                code if isinstance(code, int) and not isinstance(code, bool) else None,
                stdout, stderr, None if apart else result, False,
            )  # fmt: skip
    return None


def _loads(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def _first(value: Any, paths: Sequence[str]) -> Any:
    """Return what stands at the first of `paths` that exists in `value`."""
    for path in paths:
        found = value
        for step in path.removeprefix("$.").split("."):
            found = found.get(step) if isinstance(found, dict) else None
        if found is not None:
            return found
    return None


def _text(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return shlex.join(value)
    return value if isinstance(value, str) else None


def _program(text: str) -> str | None:
    """Return the first word of a command without its folder; None where the text cannot be read as words."""
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    return PurePosixPath(words[0]).name if words else None

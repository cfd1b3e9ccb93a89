"""Shell commands that tool calls ran: which tools are shells and where the command stands is dialect data.

Each command is one row as a whole (``simple`` false). Splitting a compound command into its simple ones needs a shell
parser and comes with the assertions that ask for them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from clawtrace.dialects.rules import ShellRule
from clawtrace.engine.run_spans import RunSpans
from clawtrace.engine.tool_calls import ToolCall

__all__ = ["Command", "commands"]


class Command(NamedTuple):
    """One row of the relation `commands`."""

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


def commands(run: RunSpans, calls: Sequence[ToolCall], shells: Callable[[str], Sequence[ShellRule]]) -> list[Command]:
    """Return the commands that the tool calls of a run carried out.

    Args:
        run: the spans.
        calls: the run's tool calls, in the order of their numbers.
        shells: which tools are shells, by the name of a dialect.
    """
    others = min((span.dialect for span in run.spans if span.kind == "llm"), default=run.spans[0].dialect)
    found = []
    known: dict[tuple[str, str], list[ShellRule]] = {}
    for number, call in enumerate(calls, 1):
        if call.outcome in ("requested", "blocked") or call.arguments is None or call.name is None:
            continue
        key = (others if call.index is None else run.spans[call.index].dialect, call.name)
        if key not in known:
            known[key] = [rule for rule in shells(key[0]) if any(fnmatchcase(key[1], glob) for glob in rule.tools)]
        command = _command(number, known[key], call.arguments, call.result) if known[key] else None
        if command is not None:
            found.append(command)
    return found


def _command(call_no: int, rules: Sequence[ShellRule], arguments: str, result: str | None) -> Command | None:
    """Return what a shell was called with; the first rule whose command stands in the arguments counts."""
    for rule in rules:
        text = _text(_first(_loads(arguments), rule.command))
        if text:
            told = _loads(result)
            stdout, stderr = _text(_first(told, rule.stdout)), _text(_first(told, rule.stderr))
            apart = stdout is not None or stderr is not None
            code = _first(told, rule.exit_code)
            return Command(
                call_no, 1, text, _program(text), text,
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

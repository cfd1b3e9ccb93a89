"""Shell commands that tool calls ran: which tools are shells and where the command is found is dialect data.

Each command is one row as a whole, and one for each command in it (`clawtrace.facts.commands.shell_text`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from clawtrace.dialects.rules import ShellRule
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.doubts import Doubt
from clawtrace.facts.json_text import read_json
from clawtrace.facts.tools.tool_call import ToolCallRow

__all__ = ["Command", "commands", "unsplit"]

_PERHAPS_BLOCKED = frozenset(("tool-cancelled", "server-span-alone"))
"""Reasons for which it is unknown how a call ended, and with it whether its command began."""

_LONGEST_WORD = 4096
"""Characters of a program's path (PATH_MAX); a longer first word names no program."""


class Command(NamedTuple):
    """One row of the relation `commands`."""

    tool_call_no: int
    command_no: int
    text: str | None
    argv0: str | None
    whole: str | None
    exit_code: int | None
    stdout: str | None
    stderr: str | None
    output: str | None
    simple: bool
    ok: bool | None
    last_no: int | None
    doubts: Sequence[Doubt] = ()


def commands(
    run: RunSpans, calls: Sequence[ToolCallRow], shells: Callable[[str, str], Sequence[ShellRule]], first: int = 1
) -> list[Command]:
    """Return the commands that the tool calls of a run carried out, or may have.

    Args:
        run: the spans.
        calls: the run's tool calls, in the order of their numbers.
        shells: the rules for a tool that is a shell, by the names of the dialect and the tool.
        first: number of the first call.
    """
    spans = run.spans
    others = min({spans[index].dialect for index in run.kinds.get("llm", ())}, default=spans[0].dialect)
    found: list[Command] = []
    for number, call in enumerate(calls, first):
        if (
            call.outcome == "blocked"
            or call.name is None
            or (call.index is not None and spans[call.index].tool_refused)
        ):
            continue
        rules = shells(others if call.index is None else spans[call.index].dialect, call.name)
        if rules:
            found.extend(_with_doubts(_of_call(number, call, rules), call))
    return found


def _with_doubts(found: Iterator[Command], call: ToolCallRow) -> Iterator[Command]:
    """Yield the commands of a call, with why each may not have run.

    The call may be none, or have been stopped before. Where no command is recorded, what was not carried out may have named none.
    """
    reasons = [one for one in call.doubts if one.column is None or one.reason in _PERHAPS_BLOCKED]
    doubts = [one._replace(column=None) for one in reasons]
    for one in found:
        if one.text is None and call.outcome != "ok":
            yield one._replace(doubts=[*doubts, Doubt(None, "arguments-not-recorded", call.index)])
        else:
            yield one._replace(doubts=doubts) if doubts else one


def unsplit(found: Sequence[Command]) -> int:
    """Return how many of the commands have a text that could not be split."""
    return sum(command.last_no is None and command.text is not None for command in found)


def _of_call(number: int, call: ToolCallRow, rules: Sequence[ShellRule]) -> Iterator[Command]:
    """Yield what a shell was called with; the first rule whose command is in the arguments counts."""
    given = read_json(call.arguments)
    named = ((rule, _text(_first(given, rule.command))) for rule in rules)
    rule, text = next(((rule, text) for rule, text in named if text), (rules[0], call.command))
    if text:
        whole = _whole(number, call, rule, text)
        parts = list(_parts(whole)) if rule.syntax == "posix" else []
        yield whole._replace(last_no=parts[-1].command_no) if parts else whole
        yield from parts[1:]
    elif not isinstance(given, dict) or any(isinstance(value, str | list | dict) and value for value in given.values()):
        # Nothing was captured, or it was given something under a name that no rule knows.
        yield _whole(number, call, rules[0], None)


def _whole(number: int, call: ToolCallRow, rule: ShellRule, text: str | None) -> Command:
    """Return the row of a whole command; a text of None was not captured."""
    decoded = read_json(call.result)
    stdout, stderr = _text(_first(decoded, rule.stdout)), _text(_first(decoded, rule.stderr))
    apart = stdout is not None or stderr is not None
    # What the process itself said goes before what its tool reported to the model.
    code = _first(decoded, rule.exit_code) if call.exit_code is None else call.exit_code
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    return Command(
        number, 1, text, _program(text), text, code, stdout, stderr, None if apart else _printed(decoded, call.result), False,
        _success(call, code), None,
    )  # fmt: skip


def _printed(decoded: Any, result: str | None) -> str | None:
    """Return what a shell printed: the text of a result that is an envelope of texts (as in MCP), else all of it."""
    parts = decoded.get("content") if isinstance(decoded, dict) else decoded
    if not isinstance(parts, list) or not parts:
        return result
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in parts]
    return "\n".join(map(str, texts)) if all(isinstance(text, str) for text in texts) else result


def _success(call: ToolCallRow, code: int | None) -> bool | None:
    """Return whether the command of a call succeeded; an exit code 0 of a call that failed says neither."""
    if code is not None:
        return False if code else None if call.outcome == "error" else True
    return False if call.outcome == "error" else None


def _parts(whole: Command) -> Iterator[Command]:
    """Yield the whole, then the commands in it; nothing when its text cannot be split."""
    from clawtrace.facts.commands.shell_split import split

    parts = split(whole.text or "")
    if parts is None:
        return
    yield whole
    for number, part in enumerate(parts, 2):
        end = None if whole.ok is None else part.ends[0] if whole.ok else part.ends[1]
        code, ok = whole.exit_code, whole.ok
        if end != "same":
            ok = {None: None, "ok": True, "failed": False, "unmet": False}[end]
            code = 0 if end == "ok" and whole.exit_code is not None else None
        yield Command(
            whole.tool_call_no, number, part.text, part.argv0, whole.text, code, None, None, None, part.simple, ok,
            part.last + 2,
        )  # fmt: skip


def _first(value: Any, paths: Sequence[str]) -> Any:
    """Return the value at the first of `paths` that exists in `value`."""
    for path in paths:
        found = value
        for step in path.removeprefix("$.").split("."):
            found = found.get(step) if isinstance(found, dict) else None
        if found is not None:
            return found
    return None


def _text(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        value = shlex.join(value)
    # JSON may escape half of a character, which is no text and cannot be stored.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _program(text: str | None) -> str | None:
    """Return the first word of a command without its folder; None where the text does not begin with one."""
    # No more is read: shlex takes a time that grows with the square of a word.
    lexer = shlex.shlex((text or "").lstrip()[: 2 * _LONGEST_WORD], posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        word = lexer.get_token()
    except ValueError:
        return None
    return PurePosixPath(word).name if word and len(word) <= _LONGEST_WORD else None

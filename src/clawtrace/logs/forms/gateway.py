"""Plain gateway lines: ``<time> run_id=r1 tool=memory.search agent=triage``, or the same words as a JSON object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clawtrace.logs.configured import Event, Events
from clawtrace.logs.conversation import as_text
from clawtrace.logs.model import LogReading
from clawtrace.logs.reading import Line, LogForm, json_object

__all__ = ["GatewayLog"]

_KEY = re.compile(r"([A-Za-z_][\w.-]*)=")
_QUOTED = {mark: re.compile(rf"{mark}((?:[^{mark}\\]|\\.)*){mark}(?=[,;]?(?:\s|$))") for mark in ('"', "'")}
_SPACE = re.compile(r"\s*")
_JSON = json.JSONDecoder()
_BARE = re.compile(r"\S*")

_WORDS = {
    "run_id": ("run_id", "runId"),
    "tool": ("tool", "tool_name", "toolName", "tool.name"),
    "call_id": ("call_id", "tool_call_id", "toolCallId"),
    "arguments": ("args", "arguments", "params"),
    "result": ("result", "output"),
    "outcome": ("outcome", "status", "phase"),
    "error": ("error",),
    "agent": ("agent", "agent_id", "agentId"),
    "to_agent": ("to_agent", "params.agentId", "params.agent_id", "target_agent"),
    "child_run_id": ("child_run_id", "childRunId"),
    "model": ("model",),
    "provider": ("provider",),
    "input_tokens": (
        "input_tokens",
        "prompt_tokens",
        "input",
        "usage.input_tokens",
        "usage.input",
        "token_usage.input",
    ),
    "output_tokens": (
        "output_tokens",
        "completion_tokens",
        "output",
        "usage.output_tokens",
        "usage.output",
        "token_usage.output",
    ),
}
"""What each part of an event is called in a line; the first word that is there counts, in capitals or not."""

_KNOWN = {part: tuple(word.casefold() for word in words) for part, words in _WORDS.items()}

_FREE = frozenset(
    ("args", "arguments", "params", "result", "output", "input", "message", "msg", "text", "content", "error", "reply",
     "prompt", "stdout", "stderr", "body", "raw", "answer", "response", "line", "data", "command", "cmd", "query", "title",
     "summary", "description", "detail", "details", "note", "comment", "said", "log", "chunk", "value")
)  # fmt: skip
"""Words whose value others write. Without quotes its end is unknown: the rest of the line belongs to it."""


class GatewayLog(LogForm):
    """Plain lines of an agent gateway."""

    name = "gateway"
    title = "plain gateway log"

    def recognises(self, head: Sequence[str]) -> bool:
        """Return whether some line says of which run it is."""
        return any(any(_line(line)[0].get(word) for word in _KNOWN["run_id"]) for line in head)

    def read(self, lines: Iterable[Line], reading: LogReading) -> None:
        """Read events; a line without a run is given to none."""
        events = Events(reading)
        for number, text in lines:
            said, words = _line(text)
            values = {name: next((said[one] for one in ones if one in said), None) for name, ones in _KNOWN.items()}
            run_id = values["run_id"]
            numbers = ((values[name] or "").isdecimal() for name in ("input_tokens", "output_tokens"))
            usage = "token_usage" in words or any(numbers)
            if not run_id:
                cut = text.startswith("{") and json_object(text) is None
                reading.could_not_read(number, text, stray=cut or usage or bool(values["tool"] or values["to_agent"]))
                continue
            if any(said.get(word) == "" for word in ("tool", "agent")) or (not values["tool"] and _names_tool(text)):
                reading.could_not_read(number, text, run_id)
                continue
            time = next((said[word] for word in ("time", "timestamp", "ts") if word in said), next(iter(words), None))
            events.take(number, Event.of(values, time=time, usage=usage))
        events.finish()


def _line(text: str) -> tuple[Mapping[str, str], list[str]]:
    """Return what a line says, be it words or a JSON object, and the words without a value."""
    entry = json_object(text) if text.startswith("{") else None
    if entry is None:
        return _values(text)
    return _flat(entry), [value for key in ("event", "type", "kind") if isinstance(value := entry.get(key), str)]


def _values(text: str) -> tuple[Mapping[str, str], list[str]]:
    """Return what a line says of each word, of a word that comes twice the first; and the words without a value.

    What is quoted, or follows a word whose value others write, belongs to that word only.
    """
    found: dict[str, str] = {}
    alone: list[str] = []
    place = 0
    while (start := _SPACE.match(text, place).end()) < len(text):  # type: ignore[union-attr]
        key = _KEY.match(text, start)
        if key is None:
            word, place = _value(text, start, free=False)
            alone.append(word)
        else:
            value, place = _value(text, key.end(), free=key.group(1).casefold() in _FREE)
            found.setdefault(key.group(1).casefold(), value)
    return found, alone


def _value(text: str, start: int, *, free: bool) -> tuple[str, int]:
    """Return the value that begins at `start`, and where it ends."""
    mark = text[start : start + 1]
    if mark in ('"', "'"):
        quoted = _QUOTED[mark].match(text, start)
        return (_unescaped(quoted.group(1), mark), quoted.end()) if quoted else (text[start + 1 :], len(text))
    if mark in ("{", "["):
        try:
            _, end = _JSON.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = len(text)
        return text[start:end], end
    bare = _BARE.match(text, start)
    assert bare is not None
    if free and not bare.group().isdecimal():
        return text[start:], len(text)
    return bare.group().rstrip(",;"), bare.end()


def _unescaped(text: str, mark: str) -> str:
    try:
        return str(json.loads(f'"{text}"')) if mark == '"' else text
    except ValueError:
        return text


def _flat(entry: Mapping[str, Any], above: str = "") -> Mapping[str, str]:
    """Return what a JSON line says, of what lies deeper by its path; what others write stays one text."""
    found: dict[str, str] = {}
    for key, value in entry.items():
        name = f"{above}{key}".casefold()
        if isinstance(value, dict) and key.casefold() not in _FREE - {"params"}:
            found |= {deeper: text for deeper, text in _flat(value, f"{name}.").items() if deeper not in found}
            if name in _KNOWN["tool"]:
                continue
        if value is not None and (above == "" or not isinstance(value, dict | list)):
            found.setdefault(name, as_text(value))
    return found


def _names_tool(text: str) -> bool:
    """Return whether a JSON line without its own tool names one somewhere inside its values."""
    entry = json_object(text) if text.startswith("{") else None
    waiting: list[Any] = [] if entry is None else list(entry.values())
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            if any(key.casefold() in _KNOWN["tool"] and value for key, value in inner.items()):
                return True
            waiting.extend(inner.values())
    return False

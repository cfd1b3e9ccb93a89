"""Plain gateway lines: ``<time> run_id=r1 tool=memory.search agent=triage``, key and value with an equals sign between."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from clawtrace.logs.events import Event, Events
from clawtrace.logs.form import Line, LogForm
from clawtrace.logs.model import LogReading

__all__ = ["Gateway"]

_KEY = re.compile(r"(?:^|(?<=\s))([A-Za-z_][\w.-]*)=")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"(?=\s|$)')
_BARE = re.compile(r"\S*")
_RUN = re.compile(r"(?:^|\s)(?:run_id|runId)=\S")

_WORDS = {
    "run_id": ("run_id", "runId"),
    "tool": ("tool", "tool_name", "toolName"),
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
    "input_tokens": ("input_tokens", "prompt_tokens", "input"),
    "output_tokens": ("output_tokens", "completion_tokens", "output"),
}
"""What each part of an event is called in a line; the first word that is there counts."""

_FREE = frozenset(
    ("args", "arguments", "params", "result", "output", "input", "message", "msg", "text", "content", "error", "reply",
     "prompt", "stdout", "stderr", "body", "raw", "answer", "response")
)  # fmt: skip
"""Words whose value others write. Without quotes nothing tells where it ends: the rest of the line belongs to it."""


class Gateway(LogForm):
    """Plain lines of an agent gateway."""

    name = "gateway"
    title = "plain gateway log"
    service = "gateway"

    def recognises(self, head: Sequence[str]) -> bool:
        """Return whether some line says of which run it is."""
        return any(_RUN.search(line) and not line.lstrip().startswith("{") for line in head)

    def read(self, lines: Iterable[Line], reading: LogReading) -> None:
        """Read events; a line without a run tells nothing."""
        events = Events(reading)
        for number, text in lines:
            said, words = _values(text)
            told = {name: next((said[one] for one in ones if one in said), None) for name, ones in _WORDS.items()}
            run_id = told["run_id"]
            if not run_id:
                reading.could_not_read(number, text)
                continue
            if any(said.get(word) == "" for word in ("tool", "agent")):
                reading.could_not_read(number, text, run_id)
                continue
            numbers = ((told[name] or "").isdecimal() for name in ("input_tokens", "output_tokens"))
            usage = "token_usage" in words or any(numbers)
            time = said.get("time") or said.get("timestamp") or next(iter(words), None)
            events.take(number, Event.of(told, time=time, usage=usage))
        events.finish()


def _values(text: str) -> tuple[Mapping[str, str], list[str]]:
    """Return what a line says of each word, of a word that comes twice the first; and the words that stand alone.

    What stands inside of quotes, or behind a word whose value others write, is nobody's but that word's.
    """
    found: dict[str, str] = {}
    alone: list[str] = []
    place = 0
    while (key := _KEY.search(text, place)) is not None:
        alone += text[place : key.start()].split()
        word = key.group(1)
        quoted = _QUOTED.match(text, key.end())
        if quoted is not None:
            value, place = _unescaped(quoted.group(1)), quoted.end()
        elif text.startswith('"', key.end()):
            value, place = text[key.end() + 1 :], len(text)
        else:
            bare = _BARE.match(text, key.end())
            value, place = (bare.group(), bare.end()) if bare else ("", key.end())
            if word in _FREE and not value.isdecimal():
                value, place = text[key.end() :], len(text)
        found.setdefault(word, value)
    return found, [*alone, *text[place:].split()]


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text

"""OpenClaw's gateway log: JSON lines in its file, `<time> [subsystem] message` on its console."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from clawtrace.logs.configured import Event, Events
from clawtrace.logs.model import LogReading
from clawtrace.logs.reading import Line, LogForm, json_object

__all__ = ["OpenClawGateway"]

_CONSOLE = re.compile(r"^(\d{4}-\d\d-\d\dT\S+) \[([\w./-]+)\] (.*)$", re.DOTALL)
_TOOL = re.compile(r"^embedded run tool (start|end): runId=(\S+) tool=(\S+) toolCallId=(\S+)")
_RUN_ID = re.compile(r"^embedded run [a-z ]+: runId=(\S+)")
_AGENT_SUBSYSTEM = "agent/embedded"


class _Said(NamedTuple):
    """One line of the log."""

    subsystem: str
    message: str
    time: Any


class OpenClawGateway(LogForm):
    """The gateway log of OpenClaw."""

    name = "openclaw_gateway"
    title = "OpenClaw gateway log"

    def recognises(self, head: Sequence[str]) -> bool:
        """Return whether some line is written as OpenClaw's logger writes it."""
        return any(_said(line) is not None for line in head)

    def read(self, lines: Iterable[Line], reading: LogReading) -> None:
        """Read where tools began and ended; other lines of the agent say at least which runs there were."""
        events = Events(reading)
        for number, text in lines:
            said = _said(text)
            if said is None:
                reading.could_not_read(number, text)
                continue
            if said.subsystem != _AGENT_SUBSYSTEM:
                continue
            tool = _TOOL.match(said.message)
            if tool is not None:
                word, run_id, name, call_id = tool.groups()
                # How it ended is not said: only that it did.
                outcome = "start" if word == "start" else None
                events.take(number, Event(run_id, said.time, name, call_id, outcome=outcome))
            elif (run := _RUN_ID.match(said.message)) is not None:
                reading.run(run.group(1))
        # Tool lines are of level debug, which is off by default.
        events.finish()


def _said(text: str) -> _Said | None:
    """Return what a line says; None where it is no line of this logger."""
    if not text.startswith("{"):
        console = _CONSOLE.match(text)
        return _Said(console.group(2), console.group(3), console.group(1)) if console is not None else None
    line = json_object(text)
    meta = line.get("_meta") if line is not None else None
    if line is None or not isinstance(meta, dict) or not isinstance(line.get("0"), str):
        return None
    named = json_object(line["0"])
    subsystem = str(named.get("subsystem") or named.get("module") or "") if named is not None else ""
    message = line.get("1") if named is not None else line["0"]
    return _Said(subsystem, message if isinstance(message, str) else "", line.get("time") or meta.get("date"))

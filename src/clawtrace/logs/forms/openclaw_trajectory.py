"""OpenClaw's trajectories: what `/export-trajectory` writes (``events.jsonl``), schema ``openclaw-trajectory`` 1.

The events of the session's transcript are read. Those of the runtime repeat them: `model.completed` sums a whole turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from clawtrace.logs.conversation import USAGE, as_text
from clawtrace.logs.forms.openclaw_session import SessionReader, usage_of
from clawtrace.logs.model import LoggedSpan, LogReading, nanoseconds
from clawtrace.logs.reading import JsonLines, Line

__all__ = ["OpenClawTrajectory"]

_AGENT = re.compile(r"^agent:([^:]+):")
_MESSAGES = ("user.message", "assistant.message", "tool.result")


class OpenClawTrajectory(JsonLines):
    """Trajectory events of OpenClaw."""

    name = "openclaw_trajectory"
    title = "OpenClaw trajectory"

    def owns(self, line: dict[str, Any]) -> bool:
        """Each line names the schema."""
        return line.get("traceSchema") == "openclaw-trajectory"

    def read(self, lines: Iterable[Line], reading: LogReading) -> None:
        """Read the events of transcripts; of a session without any, the totals of its turns."""
        sessions: dict[str, SessionReader] = {}
        turns: dict[str, list[LoggedSpan]] = {}
        for number, line in self.objects(lines, reading):
            name, data = line.get("sessionId"), line.get("data")
            if not self.owns(line) or not isinstance(name, str) or not isinstance(data, dict | None):
                reading.could_not_read(number, as_text(line))
                continue
            if name not in sessions:
                agent = _AGENT.match(str(line.get("sessionKey") or ""))
                sessions[name] = SessionReader(reading.run(name), agent.group(1) if agent else None)
            message = (data or {}).get("message")
            if line.get("type") in _MESSAGES and isinstance(message, dict):
                sessions[name].message(number, line.get("ts"), message)
            elif line.get("type") == "model.completed" and data is not None:
                turns.setdefault(name, []).append(_turn(number, line, data))
        for name, session in sessions.items():
            session.finish()
            if not session.run.spans:
                for span in turns.get(name, ()):
                    session.run.add(span)
                session.run.lacking.append("its trajectory contains no messages, only the totals of its turns.")


def _turn(number: int, line: dict[str, Any], data: dict[str, Any]) -> LoggedSpan:
    """Return the usage of a whole turn."""
    at = nanoseconds(line.get("ts"))
    counts = {
        USAGE[name]: value for name, value in usage_of(data.get("usage"), failed=False).items() if value is not None
    }
    error = data.get("promptError")
    return LoggedSpan(
        number, "usage", "model.completed", at, at, attributes={"clawtrace.log.usage": True, **counts},
        error=error if isinstance(error, str) else None,
    )  # fmt: skip

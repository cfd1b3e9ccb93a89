"""OpenClaw's session transcripts: ``agents/<agent>/sessions/<session>.jsonl``, versions 3 and 4.

The tool `tool_call` calls another tool: its result names that tool and holds its result. A line before it (customType
`openclaw.nested-tool.v1`) records the same; of a call that failed only that line names the tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clawtrace.logs.conversation import LoggedConversation, answer_parts, as_text, texts
from clawtrace.logs.model import LoggedRun, LoggedSpan, LogReading, nanoseconds
from clawtrace.logs.reading import JsonLines, Line, started_names

__all__ = ["OpenClawSession", "SessionReader", "usage_of"]

# No sets: a line may have a list where such a word is expected, and a set cannot look up a list.
_PSEUDO = ("gateway-injected", "delivery-mirror")
"""Model names of messages that no model wrote."""
_FAILED = ("error", "failed")
_BLOCKED = ("blocked", "denied", "rejected")
_FINISH = {"toolUse": "tool_calls", "stop": "stop", "length": "length"}
_CHILD_KEY = re.compile(r"agent:([^:]+):")
_DISPATCHER = "tool_call"
_OF_DISPATCHER = ("id", "toolId", "name", "args", "input")
"""Keys of its arguments: the tool's name, and what that is called with."""
_NESTED = "openclaw.nested-tool.v1"
_COMPLETED = "[Internal task completion event]\nsource: subagent\n"
_ANNOUNCED = re.compile(r"^session_key: (\S+)\nsession_id: (\S+)$", re.MULTILINE)


class OpenClawSession(JsonLines):
    """Session transcripts of OpenClaw."""

    name = "openclaw_session"
    title = "OpenClaw session transcript"

    def owns(self, line: dict[str, Any]) -> bool:
        """A session's first line, or a message that wraps one of a role."""
        if line.get("type") == "session":
            return isinstance(line.get("version"), int) and isinstance(line.get("id"), str)
        message = line.get("message")
        return (
            line.get("type") == "message"
            and "parentId" in line
            and isinstance(message, dict)
            and message.get("role") in ("user", "assistant", "toolResult")
        )

    def read(self, lines: Iterable[Line], reading: LogReading) -> None:
        """Read the messages of a session."""
        session: SessionReader | None = None
        for number, line in self.objects(lines, reading):
            if session is None:
                given = line.get("id") if line.get("type") == "session" else None
                session = SessionReader(reading.run(str(given or reading.path.stem)), _agent_of(reading.path))
            message = line.get("message")
            if line.get("type") == "message" and isinstance(message, dict):
                session.message(number, line.get("timestamp"), message)
            elif line.get("type") == "custom_message" and isinstance(line.get("details"), dict):
                session.context(line["details"])
            elif not isinstance(line.get("type"), str):
                reading.could_not_read(number, as_text(line))
        if session is not None:
            session.finish()

    def companions(self, reading: LogReading) -> list[Path]:
        """Return the transcripts of the sub-agents that are known by id: they lie in the folders of their agents."""
        if reading.path.parent.name != "sessions":
            return []
        agents = reading.path.parent.parent.parent
        return [found for name in started_names(reading) for found in sorted(agents.glob(f"*/sessions/{name}.jsonl"))]


def _agent_of(path: Path) -> str | None:
    """Return the agent's name, where the file lies in its place."""
    if path.parent.name == "sessions" and path.parent.parent.parent.name == "agents":
        return path.parent.parent.name
    return None


class SessionReader:
    """Messages of one OpenClaw session, wherever they are written down."""

    def __init__(self, run: LoggedRun, agent: str | None) -> None:
        self.run = run
        self._talk = LoggedConversation(run, agent, run.run_id)
        self._nested: dict[str, Mapping[str, Any]] = {}
        """Tools that other tools called, by the id of the outer call."""
        self._work: str | None = None
        """Id of the turn's work, from 2026.9 on: an answer that is announced to the agent starts another without a user's message."""
        self._spawned: dict[str, LoggedSpan] = {}
        """The activation behind each session key that it spawned."""

    def message(self, line: int, written: Any, message: Mapping[str, Any]) -> None:
        """Take the next message."""
        at = self._talk.clock.at(written if written is not None else message.get("timestamp"))
        role = message.get("role")
        if role == "user":
            self._user(message)
        elif role == "assistant":
            self._assistant(line, at, message)
        elif role == "toolResult":
            self._result(line, at, message)
        elif message.get("customType") == _NESTED and isinstance(message.get("details"), dict):
            self._nested[str(message["details"].get("parentToolCallId"))] = message["details"]

    def context(self, details: Mapping[str, Any]) -> None:
        """Take what the runtime of 2026.9 tells the agent between messages: in which session a sub-agent worked."""
        fragments = details.get("fragments")
        for fragment in fragments if isinstance(fragments, list) else ():
            text = fragment.get("text") if isinstance(fragment, dict) else None
            if isinstance(text, str) and text.startswith(_COMPLETED):
                self._announced(_ANNOUNCED.findall(text)[:1])  # what follows is the task's own text

    def finish(self) -> None:
        """Say which sub-agents left no word of where their own transcript is."""
        for key, span in self._spawned.items():
            if span not in self.run.started.values():
                self.run.lacking.append(f"the transcript of the sub-agent session {key!r} is not known.")

    def _user(self, message: Mapping[str, Any]) -> None:
        text = texts(message.get("content"))
        self._talk.turn(text)
        self._work = None
        provenance = message.get("provenance")
        # Only what the runtime says of itself: a user may write the same words.
        if isinstance(provenance, dict) and provenance.get("kind") == "inter_session":
            own = provenance.get("sourceSessionKey")
            self._announced([pair for pair in _ANNOUNCED.findall(text) if pair[0] == own])

    def _announced(self, sessions: Iterable[tuple[str, str]]) -> None:
        for key, session in sessions:
            if key in self._spawned:
                self.run.started[session] = self._spawned[key]

    def _assistant(self, line: int, at: int, message: Mapping[str, Any]) -> None:
        model, stop = message.get("model"), message.get("stopReason")
        if model in _PSEUDO:
            return
        about = message.get("__openclaw")
        work = _text(about.get("runId")) if isinstance(about, dict) else None
        if work is not None and self._work not in (None, work):
            self._talk.turn()
        self._work = work or self._work
        failed = stop in ("error", "aborted")
        reason = stop if isinstance(stop, str) else None
        self._talk.model_call(
            line,
            _earlier(message.get("timestamp"), at),
            at,
            provider=_text(message.get("provider")),
            request_model=_text(model),
            response_model=_text(message.get("responseModel")),
            response_id=_text(message.get("responseId")),
            finish_reason=_FINISH.get(reason or "", reason),
            usage=usage_of(message.get("usage"), failed=failed),
            answer=answer_parts(message.get("content"), "toolCall", "arguments"),
            error=(_text(message.get("errorMessage")) or str(stop)) if failed else None,
        )

    def _result(self, line: int, at: int, message: Mapping[str, Any]) -> None:
        name, call_id = _text(message.get("toolName")), _text(message.get("toolCallId"))
        content, details, arguments = message.get("content"), message.get("details"), None
        inner = self._called(call_id, details) if name == _DISPATCHER else None
        if inner is not None:
            name, content, details, arguments = inner
        facts = details if isinstance(details, dict) else {}
        status, code = facts.get("status"), facts.get("exitCode")
        failed = message.get("isError") is True or status in _FAILED
        failed = failed or (isinstance(code, int) and not isinstance(code, bool) and code != 0)
        text = texts(content)
        error = _text(facts.get("error")) or (f"exit code {code}" if isinstance(code, int) and code else None) or text
        result = {"content": content, "details": facts} if facts else text
        span = self._talk.tool(
            line,
            at,
            call_id=call_id,
            name=name,
            result=as_text(result),
            arguments=arguments,
            outcome="error" if failed else "blocked" if status in _BLOCKED else "ok",
            error=error,
        )
        key = facts.get("childSessionKey")
        if name == "sessions_spawn" and isinstance(key, str) and status == "accepted":
            agent = _CHILD_KEY.match(key)
            self._spawned[key] = self._talk.started(span, agent.group(1) if agent else None)

    def _called(self, call_id: str | None, details: Any) -> tuple[str, Any, Any, Any] | None:
        """Return the name of the tool that a dispatcher called, its result's content and details, and its arguments."""
        found = self._nested.pop(call_id or "", None) or (details if isinstance(details, dict) else {})
        tool, result = found.get("tool"), found.get("result")
        name = _text(found.get("toolName")) or (_text(tool.get("name")) if isinstance(tool, dict) else None)
        if name is None or not isinstance(result, dict):
            return None
        asked, executed = self._talk.asked(call_id), found.get("input")
        arguments: Any = executed if isinstance(executed, dict) else None
        if asked:
            rest = {key: value for key, value in asked.items() if key not in _OF_DISPATCHER}
            arguments = next((asked[key] for key in ("args", "input") if asked.get(key)), rest)
        return name, result.get("content"), result.get("details"), arguments


def _earlier(began: Any, ended: int) -> int:
    """Return when a call began: what its own message says, never after its end."""
    stated = nanoseconds(began)
    return min(stated, ended) if stated else ended


def usage_of(usage: Any, *, failed: bool) -> dict[str, int | float | None]:
    """Return tokens; OpenClaw leaves cached ones out of its input. An answer that never came has none."""
    if not isinstance(usage, dict):
        return {}
    counts = {key: usage.get(key) for key in ("input", "output", "cacheRead", "cacheWrite")}
    known = {key: value for key, value in counts.items() if isinstance(value, int) and not isinstance(value, bool)}
    if not any(known.values()) and (failed or not usage.get("totalTokens")):
        return {}
    cost = usage.get("cost")
    total = cost.get("total") if isinstance(cost, dict) else None
    parts = [known.get(key) for key in ("input", "cacheRead", "cacheWrite")]
    return {
        "input_tokens": None if parts[0] is None else sum(part or 0 for part in parts),
        "output_tokens": known.get("output"),
        "cache_read_tokens": known.get("cacheRead"),
        "cache_write_tokens": known.get("cacheWrite"),
        # Nothing is what it writes of a model that has no price.
        "cost_usd": total if isinstance(total, int | float) and total > 0 else None,
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None

"""Claude Code's transcripts: ``~/.claude/projects/<project>/<session>.jsonl``, sub-agents' in separate files or between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clawtrace.logs.conversation import LoggedConversation, answer_parts, as_text, texts
from clawtrace.logs.model import LoggedRun, LoggedSpan, LogReading
from clawtrace.logs.reading import JsonLines, Line

__all__ = ["ClaudeCode"]

_MAIN = "claude-code"
"""The name of the outermost agent, which no line states: the product's."""
_DELEGATE = ("Task", "Agent")
"""No set: a line may have a list where such a word is expected, and a set cannot look up a list."""
_SYNTHETIC = "<synthetic>"
_REJECTED = "User rejected tool use"
"""What the program itself notes next to a result; there, what a tool says follows `Error: `."""


class ClaudeCode(JsonLines):
    """Session transcripts of Claude Code."""

    name = "claude_code"
    title = "Claude Code transcript"

    def owns(self, line: dict[str, Any]) -> bool:
        """A message with its place in the session."""
        message = line.get("message")
        return (
            line.get("type") in ("user", "assistant")
            and "sessionId" in line
            and ("uuid" in line or "parentUuid" in line)
            and isinstance(message, dict)
            and "role" in message
        )

    def read(self, lines: Iterable[Line], reading: LogReading) -> None:
        """Read the messages; those of sub-agents are runs that the session's started."""
        sessions: dict[str, _AgentMessages] = {}
        for number, line in self.objects(lines, reading):
            if line.get("type") not in ("user", "assistant") or not isinstance(line.get("message"), dict):
                if not isinstance(line.get("type"), str):
                    reading.could_not_read(number, as_text(line))
                continue
            if line.get("isMeta") is True:
                continue
            session = str(line.get("sessionId") or reading.path.stem)
            key = session
            agent: str | None = _MAIN
            if line.get("isSidechain") is True:
                # A side chain that names no agent belongs to an unknown one of the session.
                key, agent = f"{session}/{line.get('agentId') or 'side chain'}", None
            if key not in sessions:
                sessions[key] = _AgentMessages(reading.run(key), session, agent)
            sessions[key].take(number, line)
        for one in sessions.values():
            one.finish()

    def companions(self, reading: LogReading) -> list[Path]:
        """Return the transcripts of sub-agents that lie next to a session's."""
        return sorted((reading.path.parent / reading.path.stem / "subagents").glob("agent-*.jsonl"))


@dataclass(slots=True, eq=False)
class _ModelAnswer:
    """One answer of the model, of which each part is a line."""

    line: int
    message: Mapping[str, Any] = field(default_factory=dict)
    parts: list[dict[str, Any]] = field(default_factory=list)
    stop: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None

    def take(self, line: Mapping[str, Any]) -> None:
        """Add the next line; each repeats the usage, the last one has all of it."""
        self.message = line["message"]
        self.parts += answer_parts(self.message.get("content"), "tool_use", "input")
        self.stop = self.message.get("stop_reason") or self.stop
        if isinstance(self.message.get("usage"), dict):
            self.usage = self.message["usage"]
        if line.get("isApiErrorMessage") is True:
            self.error = texts(self.message.get("content")) or "error"


def _id_of(number: int, line: Mapping[str, Any]) -> str:
    """Return what the lines of one answer have in common."""
    return str(line["message"].get("id") or f"line {number}")


class _AgentMessages:
    """Messages of one agent."""

    def __init__(self, run: LoggedRun, session: str, agent: str | None) -> None:
        self.run = run
        self._session = session
        self._talk = LoggedConversation(run, agent, session)
        self._lines: dict[str, tuple[int, Mapping[str, Any]]] = {}
        """By their own ids: a session that was taken up again repeats lines."""

    def take(self, number: int, line: Mapping[str, Any]) -> None:
        """Keep the next line."""
        self._lines.setdefault(str(line.get("uuid") or number), (number, line))

    def finish(self) -> None:
        """Add the spans; results may come between the parts of the answer that requested them."""
        answers: dict[str, _ModelAnswer] = {}
        for number, line in self._lines.values():
            if line["message"].get("role") == "assistant":
                name = _id_of(number, line)
                answers.setdefault(name, _ModelAnswer(number)).take(line)
        began = 0
        for number, line in self._lines.values():
            at = self._talk.clock.at(line.get("timestamp"))
            if line["message"].get("role") != "assistant":
                self._user(number, at, line["message"], line)
            elif (answer := answers.pop(_id_of(number, line), None)) is not None:
                self._call(answer, began or at, at)
            began = at

    def _call(self, answer: _ModelAnswer, start: int, end: int) -> None:
        model = answer.message.get("model")
        if model == _SYNTHETIC and answer.error is None:
            return
        self._talk.model_call(
            answer.line,
            start,
            end,
            provider="anthropic",
            response_model=model if isinstance(model, str) and model != _SYNTHETIC else None,
            response_id=answer.message.get("id"),
            finish_reason=answer.stop,
            usage={} if answer.error is not None else _usage(answer.usage, ended=answer.stop is not None),
            answer=answer.parts,
            error=answer.error,
        )

    def _user(self, number: int, at: int, message: Mapping[str, Any], line: Mapping[str, Any]) -> None:
        content = message.get("content")
        results = [
            part for part in content if isinstance(part, dict) and part.get("type") == "tool_result"
        ] if isinstance(content, list) else []  # fmt: skip
        if not results:
            self._talk.turn(texts(content))
        details = line.get("toolUseResult")
        for part in results:
            self._result(number, at, part, details if len(results) == 1 else None)

    def _result(self, number: int, at: int, part: Mapping[str, Any], details: Any) -> None:
        call_id, text = str(part.get("tool_use_id") or ""), texts(part.get("content"))
        failed = part.get("is_error") is True
        blocked = failed and details == _REJECTED
        span = self._talk.tool(
            number,
            at,
            call_id=call_id,
            result=text,
            outcome="blocked" if blocked else "error" if failed else "ok",
            error=text if failed else None,
        )
        if span.attributes.get("gen_ai.tool.name") in _DELEGATE and not blocked:
            self._sub_agent(span, details if isinstance(details, dict) else {})

    def _sub_agent(self, span: LoggedSpan, details: Mapping[str, Any]) -> None:
        asked = self._talk.asked(span.attributes.get("gen_ai.tool.call.id"))
        agent = asked.get("subagent_type")
        activation = self._talk.started(span, agent if isinstance(agent, str) else None)
        name = details.get("agentId")
        if isinstance(name, str):
            self.run.started[f"{self._session}/{name}"] = activation
        else:
            self.run.lacking.append(f"the work of the sub-agent of line {span.line} is not in its transcript.")


def _usage(usage: Mapping[str, Any], *, ended: bool) -> dict[str, int | float | None]:
    """Return tokens; cached ones are left out of the input. The output of an answer that did not end is not its whole."""
    known = {key: value for key, value in usage.items() if isinstance(value, int) and not isinstance(value, bool)}
    read, written = known.get("cache_read_input_tokens"), known.get("cache_creation_input_tokens")
    fresh = known.get("input_tokens")
    return {
        "input_tokens": None if fresh is None else fresh + (read or 0) + (written or 0),
        "output_tokens": known.get("output_tokens") if ended else None,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
    }

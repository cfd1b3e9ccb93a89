"""Lines that each record one event of a run: a tool call, a delegation, tokens. What several lines say is put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from clawtrace.logs.conversation import OUTCOME, USAGE
from clawtrace.logs.model import LoggedRun, LoggedSpan, LogReading
from clawtrace.logs.times import Clock

__all__ = ["GROUPS", "Event", "Events"]

GROUPS = (
    "run_id", "timestamp", "tool", "call_id", "arguments", "result", "outcome", "status", "error", "agent", "to_agent",
    "child_run_id", "model", "provider", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens",
)  # fmt: skip
"""What a pattern of a configured form may name."""

_OK = frozenset(
    ("ok", "success", "succeeded", "completed", "complete", "done", "end", "ended", "finished", "0", "true")
)
_ERROR = frozenset(("error", "failed", "failure", "false", "timeout", "timed_out"))
_BLOCKED = frozenset(("blocked", "denied", "rejected", "forbidden", "not_permitted"))
_STARTED = frozenset(("start", "started", "running", "begin", "pending"))


class Event(NamedTuple):
    """What one line says; None where it does not say."""

    run_id: str
    time: Any = None
    tool: str | None = None
    call_id: str | None = None
    arguments: str | None = None
    result: str | None = None
    outcome: str | None = None
    error: str | None = None
    agent: str | None = None
    to_agent: str | None = None
    child_run_id: str | None = None
    model: str | None = None
    provider: str | None = None
    usage: Mapping[str, int | None] | None = None
    """Tokens by the names of columns; None where the line is none of usage."""

    @classmethod
    def of(cls, values: Mapping[str, str | None], *, time: Any, usage: bool) -> Event:
        """Return an event of what a line says by the names of `GROUPS`."""
        tokens = {name: _number(values.get(name)) for name in USAGE if name != "cost_usd"} if usage else None
        texts = {name: values.get(name) or None for name in cls._fields if name not in ("time", "usage", "run_id")}
        texts["outcome"] = texts["outcome"] or values.get("status")
        return cls(run_id=values["run_id"] or "", time=time, usage=tokens, **texts)


class Events:
    """Makes spans of the events of a log that holds many runs."""

    def __init__(self, reading: LogReading) -> None:
        self._reading = reading
        self._clock = Clock()
        self._runs: dict[str, _RunEvents] = {}
        self._tools = 0

    def take(self, line: int, event: Event) -> None:
        """Take the next event."""
        if event.run_id not in self._runs:
            self._runs[event.run_id] = _RunEvents(self._reading.run(event.run_id))
        self._tools += event.tool is not None
        self._runs[event.run_id].take(line, self._clock.at(event.time), event)

    def finish(self) -> None:
        """Say what nothing can be concluded from: a log without any tool call may be one that never records them."""
        self._reading.tells_tools = self._tools > 0


class _RunEvents:
    """The spans of one run."""

    def __init__(self, run: LoggedRun) -> None:
        self._run = run
        self._agents: dict[str, LoggedSpan] = {}
        """By name; the one that was at work last is the last."""
        self._open: dict[tuple[str, str], LoggedSpan] = {}
        """Calls that began and did not end, by tool and call id."""
        self._parts = 0
        self._line = 0

    def take(self, line: int, at: int, event: Event) -> None:
        self._parts, self._line = 0, line
        agent = self._agent(event.agent, at)
        above = agent
        if event.tool is not None:
            above = self._tool(event, at, agent)
            event = event._replace(model=None)  # tokens next to a tool are counted, and are no model call
        if event.usage is not None or event.model is not None:
            self._usage(event, at, agent)
        if event.to_agent is not None or event.child_run_id is not None:
            self._delegation(event, at, above)

    def _agent(self, name: str | None, at: int) -> LoggedSpan | None:
        """Return the activation of an agent; a line that names none is of the one that was at work before."""
        if name is None:
            name = next(reversed(self._agents), None)
            if name is None:
                return None
        span = self._agents.pop(name, None) or self._activation(name, at, None)
        self._agents[name] = span
        span.end_ns = max(span.end_ns or 0, at)
        return span

    def _activation(self, name: str | None, at: int, above: LoggedSpan | None) -> LoggedSpan:
        attributes = {"gen_ai.operation.name": "invoke_agent"} | ({"gen_ai.agent.name": name} if name else {})
        return self._add("agent", f"invoke_agent {name}" if name else "invoke_agent", at, above, attributes)

    def _tool(self, event: Event, at: int, agent: LoggedSpan | None) -> LoggedSpan:
        assert event.tool is not None
        word = (event.outcome or "").lower()
        key = (event.tool, event.call_id or "")
        span = self._open.pop(key, None) if word not in _STARTED else None
        if span is None:
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": event.tool,
                "gen_ai.tool.call.id": event.call_id,
                OUTCOME: "unknown",
            }
            span = self._add("tool", f"execute_tool {event.tool}", at, agent, attributes)
        span.end_ns = at
        attributes = {"gen_ai.tool.call.arguments": event.arguments, "gen_ai.tool.call.result": event.result}
        span.attributes |= {name: value for name, value in attributes.items() if value is not None}
        if word in _STARTED:
            span.end_ns = None
            self._open[key] = span
        elif event.error is not None or word in _ERROR:
            span.error = event.error or event.outcome
            span.attributes.pop(OUTCOME, None)
        elif word in _BLOCKED:
            span.attributes[OUTCOME] = "blocked"
        elif word in _OK:
            span.attributes.pop(OUTCOME, None)
        return span

    def _usage(self, event: Event, at: int, agent: LoggedSpan | None) -> None:
        usage = event.usage or {}
        known = {USAGE[name]: value for name, value in usage.items() if value is not None}
        if event.model is not None:
            attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": event.model, **known}
            span = self._add(
                "llm", f"chat {event.model}", at, agent, attributes | {"gen_ai.provider.name": event.provider}
            )
            span.error = event.error
            return
        self._add("usage", "token_usage", at, agent, {"clawtrace.log.usage": True, **known})
        missing = [name for name in ("input_tokens", "output_tokens") if usage.get(name) is None]
        if missing:
            named = " and ".join(name.replace("_", " ") for name in missing)
            self._run.lacking.append(f"line {self._line} of its log has usage without {named}.")

    def _delegation(self, event: Event, at: int, above: LoggedSpan | None) -> None:
        span = self._activation(event.to_agent, at, above)
        if event.child_run_id is not None:
            self._run.started[event.child_run_id] = span
        if event.to_agent is not None and event.child_run_id is None:
            self._agents = {event.to_agent: span, **self._agents}

    def _add(
        self, kind: Any, name: str, at: int, above: LoggedSpan | None, attributes: Mapping[str, Any]
    ) -> LoggedSpan:
        known = {key: value for key, value in attributes.items() if value is not None}
        span = LoggedSpan(self._line, kind, name, at, at, above, self._parts, attributes=known)
        self._parts += 1
        return self._run.add(span)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 19 else None

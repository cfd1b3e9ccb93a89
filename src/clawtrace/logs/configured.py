"""A log format that a project describes in `clawtrace.yaml`: regular expressions whose named groups say what a line records.

Each line records one event of a run: a tool call, a delegation, tokens. What several lines say is put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import regex

from clawtrace.logs.conversation import OUTCOME, USAGE
from clawtrace.logs.model import Clock, LoggedRun, LoggedSpan, LogReading
from clawtrace.logs.reading import Line, LogForm

__all__ = ["ConfiguredForm", "Event", "Events", "FormSettings", "pattern_problem"]

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


# --- the form ---------------------------------------------------------------------------------------------------------


_SECONDS = 0.5
"""How long one expression may look at one line: some take longer than anyone waits."""

_TELLING = ("tool", "to_agent", "child_run_id", "model", "input_tokens", "output_tokens")
"""Groups of which a pattern must have one, else its lines state no fact."""


class FormSettings(NamedTuple):
    """One entry of `log_adapters`."""

    name: str
    patterns: tuple[str, ...]
    """Regular expressions; the first one that finds something in a line reads it."""
    recognise: str | None = None
    """Regular expression that finds something in one of the first lines; by default any of `patterns` does."""


def pattern_problem(pattern: str) -> str:
    """Return what is wrong with a pattern of a form, empty when nothing is."""
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        return f"{pattern!r} is not a valid regular expression: {error}"
    unknown = [name for name in compiled.groupindex if name not in GROUPS]
    if unknown:
        return f"the group {unknown[0]!r} is unknown; known groups are {', '.join(GROUPS)}"
    if not set(compiled.groupindex) & set(_TELLING):
        return f"{pattern!r} has none of the groups that state a fact: {', '.join(_TELLING)}"
    return ""


class ConfiguredForm(LogForm):
    """A form of a project's own."""

    name = "configured"

    def __init__(self, settings: FormSettings) -> None:
        self.title = f"log adapter `{settings.name}`"
        self._patterns = [regex.compile(pattern) for pattern in settings.patterns]
        self._recognise = regex.compile(settings.recognise) if settings.recognise is not None else None
        groups = {name for pattern in self._patterns for name in pattern.groupindex}
        self.by_run = "run_id" in groups
        self._tells_tools = "tool" in groups

    def recognises(self, head: Sequence[str]) -> bool:
        """Return whether one of the first lines matches its patterns."""
        patterns = self._patterns if self._recognise is None else [self._recognise]
        return any(_found(pattern, line) for pattern in patterns for line in head)

    def read(self, lines: Iterable[Line], reading: LogReading) -> None:
        """Read each line with the first pattern that finds something in it."""
        events = Events(reading)
        for number, text in lines:
            found = next((match for pattern in self._patterns if (match := _found(pattern, text))), None)
            groups = {name: value for name, value in found.groupdict().items() if value} if found is not None else {}
            if found is None or (self.by_run and "run_id" not in groups):
                reading.could_not_read(number, text, stray=not set(_TELLING).isdisjoint(groups))
                continue
            usage = bool({"input_tokens", "output_tokens"} & groups.keys())
            event = Event.of(
                groups | {"run_id": groups.get("run_id", reading.path.stem)}, time=groups.get("timestamp"), usage=usage
            )
            events.take(number, event)
        events.finish()
        reading.tells_tools = self._tells_tools


def _found(pattern: regex.Pattern[str], text: str) -> regex.Match[str] | None:
    """Return where a pattern finds something; nothing where it takes too long, so that the line counts as unread."""
    try:
        return pattern.search(text, timeout=_SECONDS)
    except TimeoutError:
        return None

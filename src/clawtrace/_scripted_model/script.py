"""What a scripted model says: steps, their conditions, and the order in which they are used."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from clawtrace.config.base import RegularExpression

__all__ = [
    "ModelRequest",
    "Play",
    "Script",
    "ScriptedFailure",
    "ScriptedStep",
    "ScriptedToolCall",
    "Usage",
    "When",
    "load_script",
]

Api = Literal["chat", "responses", "anthropic", "gemini"]


class _ScriptPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ScriptedToolCall(_ScriptPart):
    """A tool call that the model asks for."""

    name: str
    """Name of the tool."""
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    """Arguments as a JSON object; a text is sent as it is, so that it may be no JSON at all."""
    id: str | None = None
    """Id of the call; by default `call_0001`, `call_0002` …"""


class Usage(_ScriptPart):
    """Token counts of one reply, in OpenTelemetry's meaning."""

    input: int = Field(default=10, ge=0)
    """All input tokens, cached and cache-written ones included."""
    output: int = Field(default=5, ge=0)
    """All output tokens, reasoning included."""
    cached: int = Field(default=0, ge=0)
    """Input tokens read from a cache."""
    cache_write: int = Field(default=0, ge=0)
    """Input tokens written to a cache."""
    reasoning: int = Field(default=0, ge=0)
    """Output tokens that were reasoning."""


class ScriptedFailure(_ScriptPart):
    """An HTTP error in place of a reply."""

    status: int = Field(default=500, ge=400, le=599)
    """HTTP status."""
    type: str | None = None
    """Error type in the body, in the provider's words; by default the one of that status."""
    message: str = "scripted failure"
    """Error message in the body."""
    retry_after: float | None = None
    """Value of the `Retry-After` header, seconds."""


class When(_ScriptPart):
    """Conditions on a request; all that are given must hold."""

    model: RegularExpression | None = None
    """Regular expression that the whole requested model name matches."""
    system: RegularExpression | None = None
    """Regular expression found in the system prompt."""
    user: RegularExpression | None = None
    """Regular expression found in the last user text."""
    tools: tuple[str, ...] = ()
    """Tools that must all be offered."""
    no_tools: bool = False
    """No tool is offered at all."""
    last: Literal["user", "tool", "assistant"] | None = None
    """Role of the last message."""
    last_message: RegularExpression | None = None
    """Regular expression found in the last message as JSON, such as in the result of a tool."""
    api: Api | None = None
    """Protocol of the request."""

    def holds(self, asked: ModelRequest) -> bool:
        """Return whether `asked` meets every condition."""
        return (
            (self.model is None or re.fullmatch(self.model, asked.model) is not None)
            and (self.system is None or re.search(self.system, asked.system, re.DOTALL) is not None)
            and (self.user is None or re.search(self.user, asked.user, re.DOTALL) is not None)
            and set(self.tools) <= set(asked.tools)
            and not (self.no_tools and asked.tools)
            and (self.last is None or self.last == asked.last)
            and (self.last_message is None or re.search(self.last_message, asked.last_message, re.DOTALL) is not None)
            and (self.api is None or self.api == asked.api)
        )


class ScriptedStep(_ScriptPart):
    """One thing that the model says."""

    when: When = Field(default_factory=When)
    """When this step may answer; by default always."""
    text: str | None = None
    """Assistant text."""
    reasoning: str | None = None
    """Reasoning text."""
    tool_calls: tuple[ScriptedToolCall, ...] = ()
    """Requested tool calls, more than one in parallel."""
    usage: Usage | None = Field(default_factory=Usage)
    """Token counts that the reply reports; null: none."""
    model: str | None = None
    """Model name that the reply reports; by default the requested one."""
    finish: Literal["stop", "length", "tool_calls"] | None = None
    """Why the model stopped, in OpenAI's words; by default derived."""
    delay_ms: float = Field(default=0, ge=0)
    """Time before the answer, milliseconds."""
    repeat: bool = False
    """Whether this step answers again and again."""
    error: ScriptedFailure | None = None
    """An HTTP error in place of a reply."""
    body: str | None = None
    """A body in place of a reply, sent as it is with HTTP 200: an answer that no client can read."""
    disconnect: bool = False
    """Whether the connection is closed in place of a reply."""
    cut_after: int | None = Field(default=None, ge=1)
    """Number of events of a stream after which the connection breaks; a reply in one piece is not sent at all."""


class Script(_ScriptPart):
    """Everything that a scripted model will say."""

    description: str = ""
    """A sentence for the reader."""
    steps: tuple[ScriptedStep, ...] = ()
    """Steps in order; the first unused one whose `when` holds answers."""
    default: ScriptedStep | None = None
    """The answer when no step is left; by default HTTP 400 `script_exhausted`, which no client retries."""


def load_script(source: Path) -> Script:
    """Read a script file (YAML).

    Raises:
        ConfigError: the file cannot be read or is no script.
    """
    from clawtrace.config.files.document import read_document
    from clawtrace.config.files.problems import read_as

    return read_as(Script, read_document(source))


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request, seen apart from its protocol."""

    api: Api
    path: str
    body: dict[str, Any]
    model: str
    system: str
    user: str
    last: str
    tools: tuple[str, ...]

    @property
    def last_message(self) -> str:
        """The last message as it was sent; empty where there is none."""
        found = next((self.body[key] for key in ("messages", "input", "contents") if self.body.get(key)), None)
        return json.dumps(found[-1] if isinstance(found, list) else found, ensure_ascii=False) if found else ""

    @property
    def stream(self) -> bool:
        """Whether the client wants server-sent events."""
        return bool(self.body.get("stream")) or self.path.endswith(":streamGenerateContent")


@dataclass(slots=True)
class Play:
    """A script being played: which steps are used up, and the ids given out. Safe for threads."""

    script: Script
    _used: set[int] = field(default_factory=set)
    _ids: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: ModelRequest) -> tuple[int | None, ScriptedStep]:
        """Return the number of the step that answers (None for the default) and the step."""
        with self._lock:
            for number, step in enumerate(self.script.steps):
                if number not in self._used and step.when.holds(asked):
                    if not step.repeat:
                        self._used.add(number)
                    return number, step
        exhausted = ScriptedFailure(
            status=400,
            type="script_exhausted",
            message="the script has no unused step for this request; a step with `repeat: true` is used again",
        )
        return None, self.script.default or ScriptedStep(error=exhausted)

    def new_id(self, prefix: str) -> str:
        """Return the next id with `prefix`: deterministic, unique for this play."""
        with self._lock:
            self._ids += 1
            return f"{prefix}{self._ids:04d}"

"""What a case says about a program that is its agent: `runner: {type: command}` (spec: config.md §3)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr, model_validator

from clawtrace.runners.base import Protocol, WorkspaceSettings

__all__ = ["CommandSettings"]


def _text(value: Any) -> Any:
    """Accept a YAML number where a variable's value is expected; a truth value is ambiguous and refused."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character, which cannot be passed to a program")
    return text


def _name(name: str) -> str:
    if not name or "=" in name:
        raise ValueError(f"must be the name of a variable, without `=`, found {name!r}")
    return _without_nul(name)


Text = Annotated[StrictStr, BeforeValidator(_text), AfterValidator(_without_nul)]
Name = Annotated[StrictStr, AfterValidator(_name)]


def _program(command: list[str] | str) -> list[str] | str:
    if not (command if isinstance(command, str) else "".join(command[:1])).strip():
        raise ValueError("names no program")
    return command


Words = Annotated[list[Text], Field(min_length=1)]
Line = Annotated[StrictStr, Field(min_length=1), AfterValidator(_without_nul)]
Command = Annotated[Words | Line, AfterValidator(_program)]


class CommandSettings(WorkspaceSettings):
    """Settings of `runner: {type: command}`."""

    command: Command
    """The program and its arguments as a list, or one text for `/bin/sh -c`. `{{message}}` is the last user message,
    `{{turn}}` the number of the turn, `{{traceparent}}` its W3C trace context; in a shell text they are expanded like quoted variables, never read as shell
    code."""
    env: dict[Name, Text | None] = Field(default_factory=dict)
    """Variables for the agent; null takes one away. `{{env.NAME}}` reads one of the caller's."""
    cwd: StrictStr = "."
    """Working folder, relative to the workspace."""
    stdin: StrictStr | None = None
    """Text for standard input. By default the message, unless the command takes it as `{{message}}` itself."""
    input: Literal["text", "json"] = "text"
    """`json` writes all messages to standard input as a JSON list of `{role, content, name}`, or as
    `{messages, context}` where the case has a `context`; `text` the last user message."""
    setup: list[Command] = Field(default_factory=list)
    """Commands that prepare the workspace, run before the agent without telemetry; each must exit with 0."""
    setup_timeout_seconds: float = Field(default=300.0, gt=0)
    """Time limit of each setup command, in seconds."""
    agent: Literal["started", "running"] | None = None
    """`running`: the command only sends a message to an agent that already runs (a server, a gateway, a container), whose
    exporter is not clawtrace's to set: the run is closed when the entry span of each turn is here, or by silence. `started`:
    everything that exports spans is started by the command. By default the spans decide."""
    settle_ms: int | None = Field(default=None, ge=0, le=600_000)
    """Silence that closes a run whose end no exit shows, in milliseconds: longer than the exporter of the agent waits. By
    default the project's."""
    telemetry: Protocol = "http/protobuf"
    """The OTLP protocol that the agent is to export with."""
    grace_seconds: float = Field(default=5.0, ge=0)
    """Time between SIGTERM and SIGKILL when the agent is ended, in seconds."""
    leftover_seconds: float = Field(default=10.0, ge=0)
    """How long processes that the agent left behind may go on (and export) before they are ended, in seconds."""
    inputs: list[StrictStr] | None = None
    """Where all code, prompts and data of the agent are that the command does not name: paths, globs (both relative to the
    case file) and installed Python packages (`package:NAME`); `[]` where the command names everything. While they, the
    command's files, the case's folder and the program are as they were, a later campaign reuses a stored run. Without
    `inputs` this is not known, and a stored run only serves to resume its own campaign. An entry that matches nothing
    is an error."""
    leftover_may_be_killed: bool = False
    """True when such processes export no spans: ending them by a signal then is no reason against completeness."""
    logs: list[StrictStr] = Field(default_factory=list)
    """Globs of the agent's own logs and transcripts, relative to the workspace, read when the agent has ended: they record
    what its spans do not, and replace them where it sent none."""

    @model_validator(mode="after")
    def _one_input(self) -> CommandSettings:
        if self.input == "json" and self.stdin is not None:
            raise ValueError("`stdin` and `input: json` both set standard input; keep one of them")
        return self

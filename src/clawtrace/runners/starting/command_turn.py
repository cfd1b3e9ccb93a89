"""What a case says about a program that is its agent (`runner: {type: command}`; spec: config.md §3), and one turn of it.

A turn is the command's arguments, environment and standard input, with the templates filled in.
"""

from __future__ import annotations

import glob
import json
import os
import re
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr, model_validator

from clawtrace.errors import RunnerError
from clawtrace.runners.base import Message, Protocol, RunRequest, StopSignal, TelemetryTarget, WorkspaceSettings
from clawtrace.runners.starting.environment import allowed_environment, with_telemetry
from clawtrace.runners.starting.process import ProcessEnd, ProcessSpec, supervise
from clawtrace.runners.starting.templates import RunValues, names_in, render, session_id, shell_text

__all__ = ["MISSES_FILE", "PreparedTurn", "ProgramSettings", "ending", "not_started", "read_output"]

MISSES_FILE = "misses"
"""What the run's programs asked of cassettes that do not hold it, in its folder: a text in JSON a line."""


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


def _no_shell(text: str) -> str:
    if found := re.fullmatch(r"\$\{?([A-Za-z_]\w*)\}?", text):
        name = found[1]
        raise ValueError(
            f"no shell reads it, so {text} stays as it is: write {{{{env.{name}}}}}, or list {name} in `pass_env`"
        )
    return text


Text = Annotated[StrictStr, BeforeValidator(_text), AfterValidator(_without_nul)]
Name = Annotated[StrictStr, AfterValidator(_name)]


def _program(command: list[str] | str) -> list[str] | str:
    if not (command if isinstance(command, str) else "".join(command[:1])).strip():
        raise ValueError("names no program")
    return command


Words = Annotated[list[Text], Field(min_length=1)]
Line = Annotated[StrictStr, Field(min_length=1), AfterValidator(_without_nul)]
Command = Annotated[Words | Line, AfterValidator(_program)]


class ProgramSettings(WorkspaceSettings):
    """What a case says about a program that is its agent: settings of `runner: {type: command}`."""

    command: Command
    """The program and its arguments as a list, or one text for `/bin/sh -c`. `{{message}}` is the last user message,
    `{{turn}}` the number of the turn, `{{traceparent}}` its W3C trace context; in a shell text they are expanded like quoted variables, never read as shell
    code."""
    env: dict[Name, Annotated[Text, AfterValidator(_no_shell)] | None] = Field(default_factory=dict)
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
    def _one_input(self) -> ProgramSettings:
        if self.input == "json" and self.stdin is not None:
            raise ValueError("`stdin` and `input: json` both set standard input; keep one of them")
        return self

    @property
    def needs_user_message(self) -> bool:
        """Whether a string holds ``{{message}}``."""
        set_here = [text for text in self.env.values() if text is not None]
        return _use_message([*_strings(self.command, *self.setup), *set_here, self.stdin or "", self.cwd])

    @property
    def needs_opening(self) -> bool:
        """Whether setup commands, or globs that are read with them, hold ``{{message}}``."""
        return _use_message([*_strings(*self.setup), *(self.artifacts or ()), *self.logs])

    @property
    def takes_all_messages(self) -> bool:
        """Whether standard input holds all messages."""
        return self.input == "json"

    @property
    def why_no_cassette(self) -> str:
        """That the agent already runs, where it does: its environment is not ours to set."""
        if self.agent != "running":
            return ""
        return (
            "the agent already runs (`agent: running`), so that it cannot be told to ask a cassette: start it with "
            "`clawtrace model-server --cassette`"
        )


def _strings(*commands: list[str] | str) -> Iterator[str]:
    for command in commands:
        yield from [command] if isinstance(command, str) else command


def _use_message(texts: Iterable[str]) -> bool:
    return any("message" in names_in(text) for text in texts)


# --- turns ------------------------------------------------------------------------------------------------------------


MAX_OUTPUT = 4 * 1024 * 1024
"""Bytes of standard output that become the final answer; of a longer output the last ones."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "env"})
"""Programs that start the one which is meant, and end with 127 or 126 where they cannot."""
MAX_VARIABLE = 120_000
"""Bytes that one environment variable can hold with certainty (Linux: 128 KiB with its name)."""


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """One turn's strings, rendered; a run without `turns` is a single turn."""

    request: RunRequest
    settings: ProgramSettings
    workspace: Path
    messages: tuple[Message, ...]
    """Of this turn alone."""
    target: TelemetryTarget
    """Of this turn."""
    number: int = 1
    """Counted from 1."""

    @property
    def folder(self) -> Path:
        """Folder of this turn's streams."""
        request = self.request
        return request.folder / "turns" / str(self.number) if request.turns or request.reply else request.folder

    @property
    def message(self) -> str:
        """What the user said last."""
        users = [message.content for message in self.messages if message.role == "user"]
        return users[-1] if users else ""

    def value(self, name: str) -> str:
        """Return the value of a template.

        Raises:
            RunnerError: a variable of the environment is not set.
        """
        request = self.request
        values = RunValues(
            run_id=request.run_id,
            case_id=request.case_id,
            case_dir=str(request.case_dir),
            model_id=request.asked.model_id,
            workspace=str(self.workspace),
            started_at=request.started_at,
            env=request.base_env,
            extra={"message": self.message, "turn": str(self.number), "traceparent": self.target.traceparent},
        )
        try:
            return values.value(name)
        except KeyError:
            raise RunnerError(
                f"the template `{{{{{name}}}}}` has no value: the environment variable is not set"
            ) from None

    def text(self, text: str) -> str:
        """Fill in the templates of a text."""
        return render(text, self.value)

    def globs(self) -> dict[str, list[str] | None]:
        """Return the settings that are globs, with the values of their templates, which are no patterns themselves."""
        return {
            name: None if (written := getattr(self.settings, name)) is None else [self._glob(text) for text in written]
            for name in ("artifacts", "logs")
        }

    def _glob(self, text: str) -> str:
        return render(text, lambda name: glob.escape(self.value(name)))

    def argv(self, command: list[str] | str) -> tuple[list[str], dict[str, str]]:
        """Return the arguments, and the variables that a shell text expands."""
        if isinstance(command, list):
            return [self.text(argument) for argument in command], {}
        expanded: dict[str, str] = {}

        def variable(name: str) -> str:
            key = "CLAWTRACE_VALUE_" + "".join(c if c.isalnum() else "_" for c in name)
            expanded[key] = self.value(name)
            return key

        script = shell_text(command, variable)
        return ["/bin/sh", "-c", script], expanded

    def own(self) -> dict[str, str]:
        """Return the variables that the case sets, and those that inform the agent about its run."""
        request, asked, message = self.request, self.request.asked, self.message
        variables = {
            "CLAWTRACE_CASE_ID": request.case_id,
            "CLAWTRACE_WORKSPACE": str(self.workspace),
            "CLAWTRACE_RUN_MISSES": str(request.folder / MISSES_FILE),
            "CLAWTRACE_MODEL_ID": asked.model_id,
            "CLAWTRACE_REQUESTED_MODEL": asked.requested_model or asked.model_id,
            "CLAWTRACE_MODEL_SETTINGS": json.dumps(dict(asked.more)) if asked.more else None,
            "CLAWTRACE_SESSION_ID": session_id(request.run_id),
            "CLAWTRACE_TURN": str(self.number),
            "CLAWTRACE_AGENT_ID": request.agent.agent_id if request.agent else None,
            "CLAWTRACE_CONTEXT": self._context(),
            "CLAWTRACE_MESSAGE": message if len(message.encode()) <= MAX_VARIABLE and "\0" not in message else None,
        }
        variables |= {name: None if text is None else self.text(text) for name, text in self.settings.env.items()}
        return {name: text for name, text in variables.items() if text is not None}

    def _context(self) -> str | None:
        if not self.request.context:
            return None
        text = json.dumps(dict(self.request.context), ensure_ascii=False)
        if len(text.encode()) <= MAX_VARIABLE:
            return text
        if self.settings.input == "json":
            return None
        raise RunnerError(
            f"`input.context` is too long for an environment variable ({MAX_VARIABLE} bytes); with `input: json` the agent "
            "reads it on standard input"
        )

    def environment(self) -> dict[str, str]:
        """Return what the agent gets of the caller's variables."""
        env = allowed_environment(self.request.base_env, self.settings.pass_env)
        return {name: text for name, text in env.items() if self.settings.env.get(name, "") is not None}

    def set_up(self, number: int, command: list[str] | str, stop: StopSignal) -> None:
        """Run one setup command; its output goes to ``setup.log``."""
        log = self.request.folder / "setup.log"
        argv, expanded = self.argv(command)
        spec = ProcessSpec(
            argv=argv,
            env=self.environment() | self.own() | expanded,
            cwd=str(self.workspace),
            stdin=os.devnull,
            stdout=str(log),
            stderr=str(log),
            limit_s=self.settings.setup_timeout_seconds,
            grace_s=self.settings.grace_seconds,
            leftover_s=0.0,
        )
        end = supervise(spec, stop)
        if end.stopped:
            raise RunnerError("interrupted before the agent was started")
        if end.exit_code != 0:
            how = "took too long" if end.timed_out else f"ended with {ending(end)}"
            raise RunnerError(f"setup command {number} {how}: {_last_line(log)}")

    def agent(self, limit_s: float) -> ProcessSpec:
        """Return the order for the agent itself, with `limit_s` seconds left of the run's time."""
        request, settings = self.request, self.settings
        argv, expanded = self.argv(settings.command)
        env = with_telemetry(self.environment(), self.own(), self.target, settings.telemetry, request.run_id)
        env = env if request.models is None else request.models.environment(env)
        self.folder.mkdir(parents=True, exist_ok=True)
        stdin = self.folder / "stdin"
        stdin.write_text(self.stdin(), encoding="utf-8", newline="")
        return ProcessSpec(
            argv=argv,
            env=env | expanded,
            cwd=str(self.workspace / self.text(settings.cwd)),
            stdin=str(stdin),
            stdout=str(self.folder / "stdout"),
            stderr=str(self.folder / "stderr"),
            limit_s=limit_s,
            grace_s=settings.grace_seconds,
            leftover_s=settings.leftover_seconds,
        )

    def must_have_started(self, end: ProcessEnd) -> None:
        """Make sure that a shell found the program that it was to start.

        Raises:
            RunnerError: it did not.
        """
        command = self.settings.command
        why = not_started("sh" if isinstance(command, str) else self.text(command[0]), end)
        if why:
            said = _last_line(self.folder / "stderr").rstrip(".")
            raise RunnerError(f"{why}: {said}. Correct the runner's `command`, or install what it names.")

    def stdin(self) -> str:
        """Return the text for standard input."""
        settings = self.settings
        if settings.input == "json":
            named = [
                {"role": message.role, "content": message.content} | ({"name": message.name} if message.name else {})
                for message in self.messages
            ]
            context = dict(self.request.context)
            return json.dumps({"messages": named, "context": context} if context else named, ensure_ascii=False)
        if settings.stdin is not None:
            return self.text(settings.stdin)
        command = [settings.command] if isinstance(settings.command, str) else settings.command
        return "" if any("message" in names_in(argument) for argument in command) else self.message


def read_output(path: Path) -> str:
    """Return a stream's text without its final line ends; of a very long one the last 4 MiB."""
    if not path.exists():
        return ""
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - MAX_OUTPUT))
        return stream.read().decode("utf-8", "replace").rstrip("\r\n")


def ending(end: ProcessEnd) -> str:
    """Return how a command ended, in words."""
    if end.signal is not None:
        return f"signal {signal.Signals(end.signal).name}"
    return f"exit code {end.exit_code}"


def not_started(program: str, end: ProcessEnd) -> str:
    """Return why a shell did not start the program that it was to start, in one sentence; empty where it did.

    It ended with 127 (not found) or 126 (not executable) then, of which POSIX has it that a command which was found never ends
    so by itself.
    """
    if Path(program).name not in _SHELLS or end.exit_code not in (126, 127) or end.stopped:
        return ""
    what = "was not found" if end.exit_code == 127 else "could not be executed"
    return f"the agent did not start: a program of its command {what} (exit code {end.exit_code})"


def _last_line(log: Path) -> str:
    lines = [line for line in read_output(log).splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"

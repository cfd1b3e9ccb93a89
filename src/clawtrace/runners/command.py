"""The `command` runner: any agent that is a program (spec: config.md §3)."""

from __future__ import annotations

import glob
import json
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, StrictStr, model_validator

from clawtrace.errors import RunnerError
from clawtrace.runners.base import (
    Inputs,
    InputsRequest,
    Protocol,
    Runner,
    RunnerSettings,
    RunOutcome,
    RunRequest,
    RunStatus,
    StopSignal,
    TelemetryTarget,
)
from clawtrace.runners.command_inputs import command_inputs
from clawtrace.runners.environment import allowed_environment, with_telemetry
from clawtrace.runners.process import ProcessEnd, ProcessSpec, supervise
from clawtrace.runners.shell_text import shell_text
from clawtrace.runners.templates import RunValues, names_in, render
from clawtrace.runners.workspace import changes, fresh_workspace, snapshot

__all__ = ["CommandRunner", "CommandSettings", "read_output"]

MAX_OUTPUT = 4 * 1024 * 1024
"""Bytes of standard output that become the final answer; of a longer output the last ones."""
MAX_VARIABLE = 120_000
"""Bytes that one environment variable can hold with certainty (Linux: 128 KiB with its name)."""


def _text(value: Any) -> Any:
    """Accept a YAML number where a variable's value is expected; a truth value is ambiguous and refused."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


Text = Annotated[StrictStr, BeforeValidator(_text)]
Command = Annotated[list[Text], Field(min_length=1)] | Annotated[StrictStr, Field(min_length=1)]


class CommandSettings(RunnerSettings):
    """Settings of `runner: {type: command}`."""

    not_supported_yet: ClassVar[Mapping[str, str]] = {
        "artifacts": "artifacts of a run are collected with the file checks of a later version",
    }

    command: Command
    """The program and its arguments as a list, or one text for `/bin/sh -c`. `{{message}}` is the last user message;
    in a shell text it is expanded like a quoted variable, so that it is never read as shell code."""
    env: dict[str, Text | None] = Field(default_factory=dict)
    """Variables for the agent; null takes one away. `{{env.NAME}}` reads one of the caller's."""
    pass_env: list[StrictStr] = Field(default_factory=list)
    """Names or globs of the caller's variables that the agent gets besides the allow-list, for example API keys."""
    cwd: StrictStr = "."
    """Working folder, relative to the workspace."""
    stdin: StrictStr | None = None
    """Text for standard input. By default the message, unless the command takes it as `{{message}}` itself."""
    input: Literal["text", "json"] = "text"
    """`json` writes all messages to standard input as a JSON list of `{role, content, name}`; `text` the last user
    message."""
    setup: list[Command] = Field(default_factory=list)
    """Commands that prepare the workspace, run before the agent without telemetry; each must exit with 0."""
    setup_timeout_seconds: float = Field(default=300.0, gt=0)
    """Time limit of each setup command, in seconds."""
    scaffold: StrictStr | None = None
    """Folder that is copied into the fresh workspace, relative to the case file."""
    telemetry: Protocol = "http/protobuf"
    """The OTLP protocol that the agent is told to export with."""
    grace_seconds: float = Field(default=5.0, ge=0)
    """Time between SIGTERM and SIGKILL when the agent is ended, in seconds."""
    leftover_seconds: float = Field(default=10.0, ge=0)
    """How long processes that the agent left behind may go on (and export) before they are ended, in seconds."""
    inputs: list[StrictStr] | None = None
    """Globs of the files that the agent depends on, relative to the case file: a stored run is reused while they, the
    case's folder and the program are as they were. By default everything in the project counts, but for the
    configuration, results, and what git ignores."""
    leftover_may_be_killed: bool = False
    """True when such processes export no spans: ending them by a signal then is no reason against completeness."""

    logs: list[StrictStr] = Field(default_factory=list)
    """Globs of the agent's own logs and transcripts, relative to the workspace, read when the agent has ended: they tell
    what its spans do not, and stand in for them where it sent none."""

    @model_validator(mode="after")
    def _one_input(self) -> CommandSettings:
        if self.input == "json" and self.stdin is not None:
            raise ValueError("`stdin` and `input: json` both say what standard input is; keep one of them")
        return self


class CommandRunner(Runner):
    """Runs a program in a fresh workspace, with the telemetry environment, to the end of its last descendant."""

    type_name = "command"
    Settings = CommandSettings
    template_names = frozenset({"message"})

    @classmethod
    def needs_user_message(cls, settings: RunnerSettings) -> bool:
        """Whether a string of the settings holds ``{{message}}``."""
        assert isinstance(settings, CommandSettings)
        commands = [settings.command, *settings.setup]
        strings = [text for command in commands for text in ([command] if isinstance(command, str) else command)]
        strings += [text for text in settings.env.values() if text is not None]
        return any("message" in names_in(text) for text in [*strings, settings.stdin or "", settings.cwd])

    def missing(self, settings: RunnerSettings, case_dir: Path, env: Mapping[str, str]) -> str | None:
        """Return what must be there before this run can start: the scaffold, and the program of a plain list."""
        assert isinstance(settings, CommandSettings)
        if settings.scaffold is not None and not (case_dir / settings.scaffold).is_dir():
            return f"the scaffold {str(case_dir / settings.scaffold)!r} is not a folder"
        if isinstance(settings.command, str) or settings.setup or names_in(settings.command[0]):
            return None
        program, path = settings.command[0], settings.env.get("PATH") or env.get("PATH", os.defpath)
        if names_in(path) or (os.sep in program and not Path(program).is_absolute()):
            return None
        if shutil.which(program, path=path) is None:
            where = "does not exist or may not be executed" if os.sep in program else f"is not on PATH ({path})"
            return f"the program `{program}` {where}: install it, or give its full path in `command`"
        return None

    def inputs(self, request: InputsRequest) -> Inputs:
        """Return the program, the case's folder, the files it depends on, and the caller's variables that it gets."""
        assert isinstance(request.settings, CommandSettings)
        return command_inputs(request, request.settings)

    def run(self, request: RunRequest, target: TelemetryTarget | None, stop: StopSignal) -> RunOutcome:
        """Run the command once and wait until nothing of it is left."""
        assert isinstance(request.settings, CommandSettings)
        if target is None:
            raise RunnerError("a `command` runner needs a receiver for the agent's spans, and none was started")
        settings = request.settings
        scaffold = request.case_dir / settings.scaffold if settings.scaffold is not None else None
        workspace = fresh_workspace(request.folder / "workspace", scaffold)
        prepared = _Prepared(request, settings, workspace)
        for number, command in enumerate(settings.setup, start=1):
            prepared.set_up(number, command, stop)
        request.before_agent(workspace)
        before = snapshot(workspace)
        end = supervise(prepared.agent(target), stop)
        return _outcome(request, settings, end, workspace, changes(before, snapshot(workspace)))


@dataclass(frozen=True, slots=True)
class _Prepared:
    """One run's strings, rendered."""

    request: RunRequest
    settings: CommandSettings
    workspace: Path

    @property
    def message(self) -> str:
        users = [message.content for message in self.request.messages if message.role == "user"]
        return users[-1] if users else ""

    def value(self, name: str) -> str:
        request = self.request
        values = RunValues(
            run_id=request.run_id,
            case_id=request.case_id,
            case_dir=str(request.case_dir),
            model_id=request.model_id,
            workspace=str(self.workspace),
            started_at=request.started_at,
            env=request.base_env,
            extra={"message": self.message},
        )
        try:
            return values.value(name)
        except KeyError:
            raise RunnerError(
                f"the template `{{{{{name}}}}}` has no value: the environment variable is not set"
            ) from None

    def text(self, text: str) -> str:
        return render(text, self.value)

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
        """Return the variables that the case sets, and those that tell the agent about its run."""
        request, message = self.request, self.message
        told = {
            "CLAWTRACE_CASE_ID": request.case_id,
            "CLAWTRACE_WORKSPACE": str(self.workspace),
            "CLAWTRACE_MODEL_ID": request.model_id,
            "CLAWTRACE_REQUESTED_MODEL": request.requested_model or request.model_id,
            "CLAWTRACE_MODEL_SETTINGS": json.dumps(dict(request.model_settings)) if request.model_settings else None,
            "CLAWTRACE_MESSAGE": message if len(message.encode()) <= MAX_VARIABLE and "\0" not in message else None,
        }
        told |= {name: None if text is None else self.text(text) for name, text in self.settings.env.items()}
        return {name: text for name, text in told.items() if text is not None}

    def environment(self) -> dict[str, str]:
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
            how = "took too long" if end.timed_out else f"ended with {_ending(end)}"
            raise RunnerError(f"setup command {number} {how}: {_last_line(log)}")

    def agent(self, target: TelemetryTarget) -> ProcessSpec:
        """Return the order for the agent itself."""
        request, settings = self.request, self.settings
        argv, expanded = self.argv(settings.command)
        env = with_telemetry(self.environment(), self.own(), target, settings.telemetry, request.run_id)
        stdin = request.folder / "stdin"
        stdin.write_text(self.stdin(), encoding="utf-8", newline="")
        return ProcessSpec(
            argv=argv,
            env=env | expanded,
            cwd=str(self.workspace / self.text(settings.cwd)),
            stdin=str(stdin),
            stdout=str(request.folder / "stdout"),
            stderr=str(request.folder / "stderr"),
            limit_s=settings.timeout_seconds,
            grace_s=settings.grace_seconds,
            leftover_s=settings.leftover_seconds,
        )

    def stdin(self) -> str:
        """Return the text for standard input."""
        settings = self.settings
        if settings.input == "json":
            messages = self.request.messages
            named = [
                {"role": message.role, "content": message.content} | ({"name": message.name} if message.name else {})
                for message in messages
            ]
            return json.dumps(named, ensure_ascii=False)
        if settings.stdin is not None:
            return self.text(settings.stdin)
        command = [settings.command] if isinstance(settings.command, str) else settings.command
        return "" if any("message" in names_in(argument) for argument in command) else self.message


def _outcome(
    request: RunRequest, settings: CommandSettings, end: ProcessEnd, workspace: Path, changed: dict[str, list[str]]
) -> RunOutcome:
    status: RunStatus = "success" if end.exit_code == 0 else "failed"
    if end.timed_out:
        status = "timed_out"
    if end.stopped:
        status = "invalid"
    output = read_output(request.folder / "stdout")
    return RunOutcome(
        run_status=status,
        started_ns=end.started_ns,
        ended_ns=end.ended_ns,
        exit_code=end.exit_code,
        ended_by_signal=end.signal,
        timed_out=end.timed_out,
        processes_gone=end.gone,
        cut_off=None if settings.leftover_may_be_killed else cut_off(end),
        stdout=request.folder / "stdout",
        stderr=request.folder / "stderr",
        workspace=workspace,
        final_output=output or None,
        runner_error="interrupted" if end.stopped else None,
        notes=notes(end, settings.leftover_seconds),
        changes=changed,
        logs=_logs(settings.logs, workspace),
    )


def _logs(globs: Sequence[str], workspace: Path) -> tuple[Path, ...]:
    """Return the files that the globs find, each once."""
    # `Path.glob` takes no absolute pattern, and an agent's state may lie anywhere.
    found = (sorted(glob.glob(str(workspace / pattern), recursive=True)) for pattern in globs)  # noqa: PTH207
    return tuple(dict.fromkeys(Path(name) for names in found for name in names if Path(name).is_file()))


def notes(end: ProcessEnd, leftover_s: float) -> tuple[str, ...]:
    """Return what is worth saying about processes that outlived the command."""
    found = []
    if end.leftovers:
        names = ", ".join(f"`{name}`" for name in end.leftovers)
        found.append(f"outlived the command by {leftover_s:g} s and was ended: {names}")
    if end.stuck:
        found.append("survived SIGKILL: " + ", ".join(f"`{name}`" for name in end.stuck))
    return tuple(found)


def cut_off(end: ProcessEnd) -> str | None:
    """Return which processes a signal ended while they might still have had spans to export."""
    if not end.leftovers or not end.killed:
        return None
    names = ", ".join(f"`{name}`" for name in end.leftovers)
    return (
        f"{end.killed} process{'es' if end.killed > 1 else ''} that outlived the command ended by our signal and may "
        f"have lost spans ({names}); `leftover_may_be_killed: true` says that they export none"
    )


def read_output(path: Path) -> str:
    """Return a stream's text without its final line ends; of a very long one the last 4 MiB."""
    if not path.exists():
        return ""
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - MAX_OUTPUT))
        return stream.read().decode("utf-8", "replace").rstrip("\r\n")


def _ending(end: ProcessEnd) -> str:
    if end.signal is not None:
        return f"signal {signal.Signals(end.signal).name}"
    return f"exit code {end.exit_code}"


def _last_line(log: Path) -> str:
    lines = [line for line in read_output(log).splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"

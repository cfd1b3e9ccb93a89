"""The `openclaw` runner: the real program, a gateway for each run (spec: config.md §3)."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import Field, StrictStr

from clawtrace.errors import ProviderError, RunnerError
from clawtrace.providers.models import address_of, key_variable
from clawtrace.runners.base import (
    InputsRequest,
    Message,
    ModelRequested,
    Runner,
    RunOutcome,
    RunRequest,
    StopSignal,
    TelemetryTarget,
)
from clawtrace.runners.command import CommandRunner, left_out
from clawtrace.runners.gateways.order import (
    ANSWER_FILE,
    CONFIG_REFUSED,
    NOT_READY,
    TURNS_FILE,
    Container,
    GatewayOrder,
    agent_id_of,
    configuration,
    remove,
    said_file,
)
from clawtrace.runners.gateways.state import keep_transcripts
from clawtrace.runners.inputs.content import file_digest
from clawtrace.runners.model_runner import ModelRunnerSettings, command_of, model_of, parameters_of, redirected
from clawtrace.runners.starting.command_turn import read_output
from clawtrace.runners.starting.templates import session_id
from clawtrace.runners.workspace import AgentFiles

__all__ = ["OpenClawRunner", "OpenClawSettings"]

_GRACE_SECONDS = 30.0
"""Seconds for the gateway to end its turn and export."""

_FALLBACK = "EMBEDDED FALLBACK: "
"""What `openclaw agent` writes before it does a turn's work itself."""


class OpenClawSettings(ModelRunnerSettings):
    """Settings of `runner: {type: openclaw}`."""

    timeout_seconds: float = Field(default=600.0, gt=0, le=86400)
    """Time limit of the run with all its turns and sub-agents, in seconds."""
    image: StrictStr | None = None
    """OCI image with OpenClaw; null runs the one of this machine."""
    docker_cli: StrictStr = "docker"
    """The program that runs containers, for example `podman`."""
    cli: list[StrictStr] = Field(default_factory=lambda: ["openclaw"], min_length=1)
    """Words that start OpenClaw's command line; in the image, where there is one."""
    provider: StrictStr | None = None
    """Who serves the model, by OpenClaw's word; by default OpenRouter, or an OpenAI-compatible server where there is a
    `base_url`. The suite's model goes before."""
    deny_tools: list[StrictStr] = Field(default_factory=list)
    """Tools that no agent may use."""
    heartbeat: StrictStr | None = None
    """How often the agent wakes by itself, as `30m`; null: never."""
    config: dict[str, Any] = Field(default_factory=dict)
    """More of `openclaw.json`: further agents (`agents: {list: …}`), settings of tools, plugins. What a run needs goes before it:
    model, workspace, gateway, telemetry."""
    pass_env: list[StrictStr] = Field(default_factory=list)
    """Names or globs of the caller's variables that OpenClaw gets in addition to the allow-list and its provider's."""
    scaffold: StrictStr | None = None
    """Folder that is copied into the fresh workspace over the agent's files, relative to the case file."""

    def missing(self, env: Mapping[str, str], asked: ModelRequested | None = None) -> str | None:
        """Return what must be installed or set: OpenClaw or a program that runs containers, and the provider's key."""
        program, what = (self.cli[0], "`npm install -g openclaw`, or name it with `cli`")
        if self.image is not None:
            program, what = self.docker_cli, "install it, or name another with `docker_cli`"
        if shutil.which(program, path=env.get("PATH", os.defpath)) is None:
            return f"the program `{program}` is not on PATH ({env.get('PATH', os.defpath)}): {what}"
        if asked is None:
            return None
        try:
            key_variable(model_of(self, asked), env)
        except (ProviderError, RunnerError) as error:
            return str(error)
        return None

    def program(self, request: InputsRequest) -> tuple[dict[str, Any], str]:
        """Return the program's version; an image is part of the settings."""
        if self.image is not None:
            pinned = "@sha256:" in self.image
            return (
                {},
                "" if pinned else "the image is not named by its digest (`@sha256:…`), and may have changed since",
            )
        package = _package(self.cli, request.env)
        if package is None:
            return {}, "which version of OpenClaw its `cli` starts is unknown"
        return {"the version of OpenClaw": file_digest(package)}, ""


class OpenClawRunner(Runner):
    """Starts a gateway for each run, gives it the turns, and waits until it has exported."""

    type_name = "openclaw"
    Settings = OpenClawSettings
    without_templates = frozenset({"pass_env", "scaffold", "config", "image", "docker_cli", "cli", "deny_tools"})

    def run(self, request: RunRequest, target: TelemetryTarget | None, stop: StopSignal) -> RunOutcome:
        """Run the gateway's keeper as a command: its process, workspace, telemetry and ends are those of any agent.

        Raises:
            RunnerError: OpenClaw refuses its configuration, lacks its plugin, or its gateway did not come up.
        """
        settings = request.settings
        assert isinstance(settings, OpenClawSettings)
        order = _order(request, settings)
        file, home = request.folder / "gateway.json", Path(order.home)
        home.mkdir(parents=True)
        Path(order.plugin_stage).mkdir(parents=True, exist_ok=True)
        variables = model_of(settings, request.asked).variables
        as_command = command_of(
            "clawtrace.runners.gateways.keeper",
            order,
            file,
            settings,
            pass_env=[*variables, *settings.pass_env, "NPM_CONFIG_*", "DOCKER_*", "CONTAINER_*"],
            stdin="",
            timeout_seconds=settings.timeout_seconds,
            grace_seconds=_GRACE_SECONDS,
        )
        alone = replace(request, settings=as_command, context={}, turns=(), reply=None)
        try:
            with _replies(request, home):
                outcome = CommandRunner().run(alone, target, stop)
                started = _started(home)
                transcripts, lost = _kept(home, request.folder)
            if why := _why(outcome):
                raise RunnerError(why)
            return replace(
                outcome,
                cut_off=_unseen(outcome) or outcome.cut_off,
                turns_started_ns=started or outcome.turns_started_ns,
                final_output=read_output(home / ANSWER_FILE) or None,
                logs=tuple(transcripts),
                notes=(*outcome.notes, *_unfinished(outcome, order.turns, started), *lost),
            )
        finally:
            file.unlink(missing_ok=True)
            if order.container is not None:
                remove(order.container, request.base_env)
            shutil.rmtree(home, ignore_errors=True)


def _order(request: RunRequest, settings: OpenClawSettings) -> GatewayOrder:
    env = request.base_env
    choice = redirected(model_of(settings, request.asked), request.models, env)
    agent = request.agent or AgentFiles("main", request.folder)
    program = agent.program
    workspace, home = str(request.folder / "workspace"), request.folder / "gateway"
    cache = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    stage = env.get("OPENCLAW_PLUGIN_STAGE_DIR") or str(cache / "clawtrace" / "openclaw-plugins")
    container = None
    if settings.image is not None:
        name = "clawtrace-" + session_id(request.run_id)
        container = Container(settings.docker_cli, settings.image, name, (*choice.variables, *settings.pass_env))
    return GatewayOrder(
        cli=list(settings.cli),
        configuration=configuration(
            choice,
            key_variable(choice, env),
            address_of(choice, env),
            program,
            agent.agent_id,
            workspace,
            str(home),
            params=parameters_of(request.asked.more),
            deny_tools=settings.deny_tools,
            heartbeat=settings.heartbeat,
            fragment=settings.config,
        ),
        home=str(home),
        workspace=workspace,
        agent=agent_id_of(program, agent.agent_id),
        session=session_id(request.run_id),
        turns=None if request.reply else _texts(request),
        timeout_seconds=settings.timeout_seconds,
        plugin_stage=stage,
        container=container,
    )


def _texts(request: RunRequest) -> list[str]:
    """Return the text of each turn; the messages come with the first."""
    first, later = request.turns[:1], request.turns[1:]
    return [_text((*request.messages, *first)), *(_text((turn,)) for turn in later)]


def _text(messages: Sequence[Message]) -> str:
    """Return messages as one text: one of the user's as it is, several under their roles."""
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].content
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in messages)


@contextmanager
def _replies(request: RunRequest, home: Path) -> Iterator[None]:
    """Send the keeper each requested turn of a simulated user.

    Raises:
        RunnerError: the user could not go on; the keeper was told that the conversation is over.
    """
    reply = request.reply
    if reply is None:
        yield
        return
    from clawtrace.runners.gateways.keeper import at_a_change
    from clawtrace.support.files import whole_text_file

    over = home / "over"
    failed: list[Exception] = []

    def answer() -> None:
        for number in count(1):
            file = said_file(home, number)
            at_a_change(home, partial(_any_exists, over, file.with_suffix("")))
            if over.exists():
                return
            said = None
            try:
                said = reply(None if number == 1 else read_output(home / ANSWER_FILE))
            except Exception as error:
                failed.append(error)
            text = None if said is None else _text((*request.messages, said) if number == 1 else (said,))
            with whole_text_file(file) as stream:
                json.dump(text, stream)
            if said is None:
                return

    thread = threading.Thread(target=answer, name="clawtrace-user")
    thread.start()
    try:
        yield
    finally:
        over.touch()
        thread.join()
    if failed:
        raise failed[0]


def _any_exists(*files: Path) -> bool:
    return any(file.exists() for file in files)


def _started(home: Path) -> tuple[int, ...]:
    try:
        return tuple(json.loads((home / TURNS_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return ()


def _kept(home: Path, folder: Path) -> tuple[list[Path], list[str]]:
    """Keep the gateway's log and the transcripts of its sessions; return the transcripts, and why one is not kept."""
    with suppress(OSError):
        shutil.move(home / "gateway.log", folder / "gateway.log")
    return keep_transcripts(home / "state", folder / "transcripts")


def _why(outcome: RunOutcome) -> str | None:
    """Return why the agent could not be run; None where it was."""
    if outcome.run_status != "failed" or outcome.exit_code not in (CONFIG_REFUSED, NOT_READY) or outcome.stderr is None:
        return None
    return outcome.stderr.read_text(encoding="utf-8", errors="replace").strip()


def _unseen(outcome: RunOutcome) -> str | None:
    """Return that the command line worked on a turn itself, which it does where the gateway ends or does not take it."""
    if outcome.stderr is None or _FALLBACK not in outcome.stderr.read_text(encoding="utf-8", errors="replace"):
        return None
    return "the gateway did not answer a turn: OpenClaw's command line worked on it once more, without telemetry."


def _unfinished(outcome: RunOutcome, turns: Sequence[str] | None, started: Sequence[int]) -> tuple[str, ...]:
    if turns is None or not started or len(started) == len(turns):
        return ()
    return (left_out(len(started), len(turns), None if outcome.timed_out else f"exit code {outcome.exit_code}"),)


def _package(cli: Sequence[str], env: Mapping[str, str]) -> Path | None:
    """Return the `package.json` of the program that the words start; None where there is none."""
    for word in reversed(cli):
        found = shutil.which(word, path=env.get("PATH", os.defpath)) or word
        for folder in Path(found).resolve().parents:
            file = folder / "package.json"
            with suppress(OSError, ValueError):
                if json.loads(file.read_text(encoding="utf-8")).get("name") == "openclaw":
                    return file
    return None

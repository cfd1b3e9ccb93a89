"""The `llm_probe` runner: a model with a few tools, and nothing else of an agent (spec: config.md §3)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, StrictStr

from clawtrace.errors import RunnerError
from clawtrace.providers.models import why_unavailable
from clawtrace.runners.base import (
    InputsRequest,
    ModelRequested,
    Protocol,
    Runner,
    RunOutcome,
    RunRequest,
    StopSignal,
    TelemetryTarget,
)
from clawtrace.runners.command import CommandRunner
from clawtrace.runners.model_runner import ModelRunnerSettings, command_of, model_of, parameters_of, redirected
from clawtrace.runners.probing import _confined
from clawtrace.runners.probing.order import PROVIDER_FAILED, ProbeOrder
from clawtrace.support.attribute_docs import Documented

__all__ = ["LlmProbeRunner", "LlmProbeSettings", "WebSearch", "options_of"]

_PACKAGES = ("clawtrace-eval", "pydantic-ai-slim", "openai", "anthropic", "google-genai")
"""Packages whose versions a probe depends on."""


def _search_address(url: str) -> str:
    if not url.startswith(("http://", "https://")) or "{query}" not in url:
        raise ValueError("must be an http(s) address that contains `{query}`")
    return url


class WebSearch(Documented):
    """Where the tool `web_search` looks."""

    model_config = ConfigDict(strict=True)

    url: Annotated[StrictStr, AfterValidator(_search_address)]
    """Address that is read for a search; `{query}` in it stands for the encoded words. The model is shown the response."""
    api_key_env: StrictStr | None = None
    """Variable that holds a key, sent as `Authorization: Bearer …`."""


class LlmProbeSettings(ModelRunnerSettings):
    """Settings of `runner: {type: llm_probe}`."""

    timeout_seconds: float = Field(default=30.0, gt=0, le=86400)
    """Time limit of one request to the model, in seconds; a request that takes longer is tried again."""
    run_timeout_seconds: float = Field(default=1800.0, gt=0, le=86400)
    """Time limit of the whole run, in seconds; then its processes are ended."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature; by default the provider's, as with the next three."""
    top_p: float | None = Field(default=None, ge=0, le=1)
    """Nucleus sampling."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Most tokens of one response."""
    seed: int | None = None
    """Seed of the sampling, where the provider has one."""
    request_options: dict[str, Any] = Field(default_factory=dict)
    """Other parameters of each request, by pydantic-ai's name or else as keys of the request's body:
    `{reasoning: {effort: low}}`. Keys of the suite's model that are no setting of its own are such parameters, too, and win."""
    retries: int = Field(default=5, ge=0, le=100)
    """How often a request is tried again after a rate limit, an outage, a time-out or a response that cannot be read."""
    retry_wait_seconds: float = Field(default=1.0, ge=0, le=60)
    """Wait before the second attempt; twice as long before each further one, up to 60 s, shortened at random by up to a half.
    Where the provider says how long, so long."""
    max_turns: int = Field(default=8, ge=1, le=10_000)
    """Responses with tool calls, after which the model must give its final answer without tools; counted for each user turn."""
    provider: StrictStr | None = None
    """Who serves the model: a provider of pydantic-ai, as `openrouter`, `openai`, `anthropic` or `google`; by default OpenRouter,
    or an OpenAI-compatible server where there is a `base_url`. The suite's model goes before."""
    web_search: WebSearch | None = None
    """Where the tool `web_search` looks."""
    tool_timeout_seconds: float = Field(default=60.0, gt=0, le=86400)
    """Time limit of one tool call, in seconds."""
    confined: bool = True
    """Whether commands of `exec_shell` can use only the workspace and installed programs (Linux, by Landlock); false lets them
    do whatever the user may."""
    read_paths: list[StrictStr] = Field(default_factory=list)
    """Files and folders outside of the workspace that confined commands may read, relative to the case file."""
    pass_env: list[StrictStr] = Field(default_factory=list)
    """Names or globs of the caller's variables that the provider's client needs in addition to those of its own. Tools do not
    see them."""
    telemetry: Protocol = "http/protobuf"
    """The OTLP protocol that the spans are exported with."""

    def absent(self, case_dir: Path, env: Mapping[str, str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield a scaffold that is no folder, and paths for reading that are not there."""
        yield from super().absent(case_dir, env)
        for index, path in enumerate(self.read_paths):
            if not (case_dir / path).exists():
                yield ("read_paths", index), f"{path!r} does not exist next to the case file"

    def missing(self, env: Mapping[str, str], asked: ModelRequested | None = None) -> str | None:
        """Return what must be installed or set: a package, a key, a model's name, a search, a kernel that confines."""
        if asked is None:
            return None
        if "web_search" in asked.tools:
            if self.web_search is None:
                return "the tool `web_search` needs an address: set `web_search: {url: …}` in the runner's settings"
            name = self.web_search.api_key_env
            if name and not env.get(name):
                return f"the key of `web_search` is missing: set the environment variable {name}"
        if "exec_shell" in asked.tools and self.confined and not _confined.available():
            return (
                "the tool `exec_shell` cannot be kept inside of the workspace here, for the kernel has no Landlock: run clawtrace "
                "in a container of its own and set `confined: false`, or leave the tool out"
            )
        try:
            return why_unavailable(model_of(self, asked), env, options_of(self, asked))
        except RunnerError as error:
            return str(error)

    def program(self, request: InputsRequest) -> tuple[dict[str, Any], str]:
        """Return what a probe is made of: packages by version, and the variables that its provider reads."""
        globs = [*self.pass_env, "*_BASE_URL"]
        read = {name: text for name, text in request.env.items() if any(fnmatchcase(name, glob) for glob in globs)}
        return {
            "installed Python packages": _versions(),
            "variables of the provider": {
                name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(read.items())
            },
        }, ""


def options_of(settings: LlmProbeSettings, asked: ModelRequested) -> dict[str, Any]:
    """Return the parameters of each request: the settings, then what the suite's model adds."""
    own = {key: getattr(settings, key) for key in ("temperature", "top_p", "max_tokens", "seed")}
    own = {key: value for key, value in own.items() if value is not None}
    return own | settings.request_options | parameters_of(asked.more)


class LlmProbeRunner(Runner):
    """Gives a model the messages and the tools of the case, in a process of its own, until it answers."""

    type_name = "llm_probe"
    Settings = LlmProbeSettings
    without_templates = frozenset({"pass_env", "scaffold", "read_paths", "web_search", "request_options"})

    def run(self, request: RunRequest, target: TelemetryTarget | None, stop: StopSignal) -> RunOutcome:
        """Run the loop as a command: its process, workspace, telemetry and ends are those of any agent."""
        settings = request.settings
        assert isinstance(settings, LlmProbeSettings)
        order = _order(request, settings)
        file, history = request.folder / "probe.json", Path(order.history)
        search_key = [order.search_key_env] if order.search_key_env else []
        as_command = command_of(
            "clawtrace.runners.probing.agent",
            order,
            file,
            settings,
            pass_env=[*order.model.variables, *settings.pass_env, *search_key],
            input="json",
            telemetry=settings.telemetry,
            timeout_seconds=settings.run_timeout_seconds,
        )
        try:
            outcome = CommandRunner().run(replace(request, settings=as_command, context={}), target, stop)
        finally:  # they may hold secrets, and what is in them is kept elsewhere
            file.unlink(missing_ok=True)
            history.unlink(missing_ok=True)
        if outcome.run_status == "failed" and outcome.exit_code == PROVIDER_FAILED:
            return replace(outcome, run_status="provider_error")
        return outcome


def _order(request: RunRequest, settings: LlmProbeSettings) -> ProbeOrder:
    asked, search, choice = request.asked, settings.web_search, model_of(settings, request.asked)
    return ProbeOrder(
        model=redirected(choice, request.models, request.base_env),
        options=options_of(settings, asked),
        tools=list(asked.tools),
        workspace=str(request.folder / "workspace"),
        history=str(request.folder / "history.json"),
        max_turns=settings.max_turns,
        retries=settings.retries,
        retry_wait_seconds=settings.retry_wait_seconds,
        timeout_seconds=settings.timeout_seconds,
        tool_timeout_seconds=settings.tool_timeout_seconds,
        confined=settings.confined,
        read_paths=[str((request.case_dir / path).resolve()) for path in settings.read_paths],
        search_url=search.url if search else None,
        search_key_env=search.api_key_env if search else None,
    )


@cache
def _versions() -> dict[str, str | None]:
    """Return the versions of the packages that a probe is made of; None for one that is not installed."""
    found: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found

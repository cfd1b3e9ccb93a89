"""Shared by the runners that send messages to the suite's model (spec: config.md §3)."""

from __future__ import annotations

import json
import sys
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import StrictStr

from clawtrace.errors import RunnerError
from clawtrace.providers.models import ModelChoice, address_of, choose_model
from clawtrace.runners.base import AgentInputs, InputsRequest, ModelAddresses, ModelRequested, WorkspaceSettings
from clawtrace.runners.command import CommandSettings
from clawtrace.runners.inputs.content import folder_tree
from clawtrace.runners.starting.templates import escaped

__all__ = ["ModelRunnerSettings", "command_of", "model_of", "parameters_of", "redirected"]

_NAMES_A_MODEL = frozenset({"openrouter_model", "provider", "model_name", "base_url", "api_key_env", "primary_params"})
"""Keys of a suite's model that say which model it is; all others are parameters of its requests."""


class ModelRunnerSettings(WorkspaceSettings):
    """Settings that name a provider, where the suite's model does not."""

    provider: StrictStr | None = None
    """Who serves the model; by default OpenRouter, or an OpenAI-compatible server where there is a `base_url`. The suite's
    model goes before."""
    base_url: StrictStr | None = None
    """Where the provider is, instead of its usual address. The suite's model goes before."""
    api_key_env: StrictStr | None = None
    """Variable that holds the provider's key, instead of the usual one. The suite's model goes before."""

    @property
    def needs_user_message(self) -> bool:
        """Whether a case without a user message is a mistake: it always is."""
        return True

    def depends_on(self, request: InputsRequest) -> AgentInputs:
        """Return the program that asks the model, and the scaffold."""
        digests, unknown = self.program(request)
        files: dict[str, Mapping[str, str]] = {}
        if self.scaffold is not None:
            found = folder_tree(request.case_dir / self.scaffold)
            digests["the scaffold"], files["the scaffold"] = found.digest, found.files
        return AgentInputs(digests, unknown, files)

    @abstractmethod
    def program(self, request: InputsRequest) -> tuple[dict[str, Any], str]:
        """Return digests of the program that asks the model, and why they are not all known; empty when they are."""


def model_of(settings: ModelRunnerSettings, asked: ModelRequested) -> ModelChoice:
    """Return which model a run asks: `requested_model`, `openrouter_model`, `provider` with `model_name`, or the `model_id`.

    Raises:
        RunnerError: the suite names none.
    """
    more = asked.more
    given: dict[str, Any] = {
        key: more.get(key) or getattr(settings, key) for key in ("provider", "base_url", "api_key_env")
    }
    if asked.requested_model:
        return choose_model(asked.requested_model, **given)
    if more.get("openrouter_model"):
        return choose_model(str(more["openrouter_model"]), **given | {"provider": "openrouter"})
    if given["provider"] and more.get("model_name"):
        return choose_model(str(more["model_name"]), **given)
    if asked.model_id is None:
        raise RunnerError("this runner needs a model: list it under `models` of the suite")
    return choose_model(asked.model_id, **given)


def command_of(module: str, order: Any, file: Path, settings: WorkspaceSettings, **more: Any) -> CommandSettings:
    """Write the order of a program of ours, and return the command that runs it: its workspace, telemetry and ends are any agent's.

    Args:
        module: the program; it finds the order's file as its argument.
        order: a dataclass of JSON values.
        more: further settings of the command.
    """
    file.write_text(json.dumps(asdict(order), ensure_ascii=False), encoding="utf-8")
    # Not `-m` alone: the workspace, where a model may write modules, would be looked into first.
    words = [sys.executable, "-P", "-m", module, str(file)]
    command = [escaped(word) for word in words]
    return CommandSettings(
        command=command, scaffold=settings.scaffold, artifacts=settings.artifacts, agent="started", **more
    )


_KNOWN = {"openai": "openai", "openrouter": "openrouter", "anthropic": "anthropic", "google": "gemini"}
"""Our server's names of the providers whose usual address it knows."""


def redirected(choice: ModelChoice, models: ModelAddresses | None, env: Mapping[str, str]) -> ModelChoice:
    """Return a model that is asked at our server, where a cassette takes the place of its provider.

    Args:
        env: where the address of its provider may be.

    Raises:
        RunnerError: that address is not known.
    """
    if models is None:
        return choice
    name, address = choice.provider.removesuffix("-chat").removesuffix("-responses"), address_of(choice, env)
    if name not in _KNOWN and address is None:
        raise RunnerError(
            f"no cassette can take the place of the provider `{choice.provider}`, whose address is not known: give a `base_url`"
        )
    return replace(choice, base_url=models.at(_KNOWN.get(name, name), address))


def parameters_of(more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of each request among the keys of the suite's model."""
    own = {key: value for key, value in more.items() if key not in _NAMES_A_MODEL}
    return own | dict(more.get("primary_params") or {})

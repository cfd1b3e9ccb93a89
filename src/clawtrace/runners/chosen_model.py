"""Which of the names in a suite and in a runner's settings is the model of a run (spec: config.md §3)."""

from __future__ import annotations

from typing import Any, Protocol

from clawtrace.errors import RunnerError
from clawtrace.providers.models import ModelChoice, choose_model
from clawtrace.runners.base import ModelRequested

__all__ = ["NAMES_A_MODEL", "NamesProvider", "model_of"]

NAMES_A_MODEL = frozenset({"openrouter_model", "provider", "model_name", "base_url", "api_key_env", "primary_params"})
"""Keys of a suite's model that say which model it is; all others are parameters of its requests."""


class NamesProvider(Protocol):
    """Settings of a runner that name a provider, where the suite's model does not."""

    @property
    def provider(self) -> str | None:
        """Its word."""
        ...

    @property
    def base_url(self) -> str | None:
        """Where it is."""
        ...

    @property
    def api_key_env(self) -> str | None:
        """The variable that holds the key."""
        ...


def model_of(settings: NamesProvider, asked: ModelRequested) -> ModelChoice:
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

"""Which model is meant, who serves it, and with which parameters it is asked (spec: config.md §3, §4).

A name alone is a name at OpenRouter, as `openai/gpt-4o-mini`; `anthropic:claude-sonnet-5` and a `provider` name another
service. The packages of providers are imported when a model is opened, not before.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from clawtrace.errors import ProviderError

if TYPE_CHECKING:
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider
    from pydantic_ai.settings import ModelSettings

__all__ = [
    "OPENAI_COMPATIBLE",
    "ModelChoice",
    "address_of",
    "choose_model",
    "key_variable",
    "open_model",
    "request_settings",
    "why_unavailable",
]

OPENAI_COMPATIBLE = "openai-compatible"
"""The provider of a `base_url` of which nothing else is said: Chat Completions, and no key unless one is named."""

_INSTALL = "install it in clawtrace's checkout: `uv tool install --force '.[providers]'`"

_KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
}
"""Variables that hold the key of a provider. The others read their own."""

_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "azure": ("AZURE_*", "OPENAI_API_VERSION"),
    "bedrock": ("AWS_*",),
    "cohere": ("CO_*",),
    "google": ("GOOGLE_*", "GEMINI_*"),
    "google-cloud": ("GOOGLE_*",),
    "openai-chat": ("OPENAI_*",),
    "openai-responses": ("OPENAI_*",),
    "huggingface": ("HF_*",),
    OPENAI_COMPATIBLE: (),
}
"""Variables that a provider reads, as names or globs, where they do not begin with its name."""

_MOVED = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "google": "GOOGLE_GEMINI_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "openrouter": "OPENROUTER_BASE_URL",
}
"""Variables that move a provider."""

_ADDRESSES = ("base_url", "api_base", "azure_endpoint")
"""Parameters of provider classes that take an address."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model at one provider."""

    name: str
    """As the provider knows it."""
    provider: str
    base_url: str | None = None
    """None: where the provider is, or what its own variable says."""
    api_key_env: str | None = None
    """The variable that holds the key; None: the provider's own."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that this provider reads, as names or globs: what a process that asks the model must be given."""
        prefix = self.provider.upper().replace("-", "_")
        own = _VARIABLES.get(self.provider, (f"{prefix}_*",))
        return (*own, self.api_key_env) if self.api_key_env else own


def choose_model(
    model: str, *, provider: str | None = None, base_url: str | None = None, api_key_env: str | None = None
) -> ModelChoice:
    """Return the model that is meant.

    Args:
        model: its name; without `provider`, `openai:gpt-5` names the provider, too.
        provider: a word of pydantic-ai, as `anthropic`; None takes the one before the colon, an OpenAI-compatible
            server where there is a `base_url`, and else OpenRouter.
        base_url: where the provider is, instead of its usual address.
        api_key_env: name of the variable that holds the key.
    """
    if provider is None:
        before, colon, after = model.partition(":")
        if colon and "/" not in before and _is_provider(before):
            provider, model = before, after
        else:
            provider = OPENAI_COMPATIBLE if base_url else "openrouter"
    return ModelChoice(model, provider, base_url, api_key_env)


def open_model(choice: ModelChoice, env: Mapping[str, str] | None = None) -> Model:
    """Return the model, ready to be asked; nothing is sent yet.

    Args:
        env: where the key is; the process's own environment by default.

    Raises:
        ProviderError: a package or a key is missing, or there is no such provider. The message says what to do.
    """
    given = os.environ if env is None else env
    try:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
    except ImportError as error:
        raise ProviderError(
            f"a model can only be asked through pydantic-ai, which is not installed: {_INSTALL}"
        ) from error
    try:
        if choice.provider == OPENAI_COMPATIBLE:
            return infer_model(f"openai-chat:{choice.name}", lambda _: _compatible(choice, given))
        return infer_model(f"{choice.provider}:{choice.name}", lambda _: _provider(choice, given))
    except ImportError as error:
        raise ProviderError(f"a package of the provider `{choice.provider}` is missing. {error}") from error
    except UserError as error:
        raise ProviderError(
            f"the model {choice.name!r} of the provider `{choice.provider}` cannot be used: {error}"
        ) from error


def address_of(choice: ModelChoice, env: Mapping[str, str]) -> str | None:
    """Return where the provider is, by the settings or by its variable; None: its usual address."""
    return choice.base_url or env.get(_MOVED.get(choice.provider.partition("-")[0], ""))


def why_unavailable(
    choice: ModelChoice, env: Mapping[str, str], options: Mapping[str, Any] | None = None
) -> str | None:
    """Return what must be installed or set before this model can be asked with these parameters; None when nothing must."""
    try:
        request_settings(open_model(choice, env), choice, options or {})
    except ProviderError as error:
        return str(error)
    return None


def request_settings(model: Model, choice: ModelChoice, options: Mapping[str, Any]) -> ModelSettings:
    """Return the parameters of a request: what pydantic-ai has a name for, and all others as keys of the request's body.

    Raises:
        ProviderError: the provider's requests take no other keys.
    """
    from pydantic_ai.settings import ModelSettings

    own = f"{choice.provider.split('-')[0]}_"
    named = {
        key: value for key, value in options.items() if key in ModelSettings.__annotations__ or key.startswith(own)
    }
    others = {key: value for key, value in options.items() if key not in named}
    if others and "extra_body" in model.unsupported_settings:
        names = ", ".join(f"`{key}`" for key in others)
        raise ProviderError(
            f"the provider `{choice.provider}` takes no parameter {names}: remove it, or use pydantic-ai's name for it, which "
            f"begins with `{own}`"
        )
    if others:
        named["extra_body"] = {**others, **(named.get("extra_body") or {})}
    return cast("ModelSettings", named)


def _is_provider(word: str) -> bool:
    try:
        from pydantic_ai.providers import infer_provider_class

        infer_provider_class(word)
    except ValueError:
        return False
    except ImportError:  # it is known, and its package is missing: opening the model says so
        return True
    return True


def _key(choice: ModelChoice, env: Mapping[str, str]) -> str | None:
    """Return the key; None where the provider finds it by itself.

    Raises:
        ProviderError: there is none.
    """
    name = key_variable(choice, env)
    return None if name is None else env[name]


def key_variable(choice: ModelChoice, env: Mapping[str, str]) -> str | None:
    """Return the variable that holds the key; None where the provider has none, or finds it by itself.

    Raises:
        ProviderError: it is not set.
    """
    names = (choice.api_key_env,) if choice.api_key_env else _KEYS.get(choice.provider, ())
    found = next((name for name in names if env.get(name)), None)
    if names and found is None:
        other = "" if choice.api_key_env else ", or name another variable with `api_key_env`"
        raise ProviderError(
            f"the key of the provider `{choice.provider}` is missing: set the environment variable {' or '.join(names)}{other}"
        )
    return found


def _compatible(choice: ModelChoice, env: Mapping[str, str]) -> Provider[Any]:
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    if choice.base_url is None:
        raise ProviderError(f"the provider `{OPENAI_COMPATIBLE}` needs a `base_url`")
    key = _key(choice, env) if choice.api_key_env else None
    return OpenAICompatibleProvider(OPENAI_COMPATIBLE, base_url=choice.base_url, api_key=key)


def _provider(choice: ModelChoice, env: Mapping[str, str]) -> Provider[Any]:
    from pydantic_ai.providers import infer_provider_class

    try:
        kind = infer_provider_class(choice.provider)
    except ValueError as error:
        raise ProviderError(
            f"there is no provider `{choice.provider}`: pydantic-ai has `openrouter`, `openai`, `anthropic`, "
            "`google` and others"
        ) from error
    takes = inspect.signature(kind.__init__).parameters
    given: dict[str, Any] = {}
    key = _key(choice, env)
    if key is not None and "api_key" in takes:
        given["api_key"] = key
    # The others' own clients read such a variable; OpenRouter is asked through another provider's client.
    address = choice.base_url or (env.get("OPENROUTER_BASE_URL") if choice.provider == "openrouter" else None)
    if not address:
        return kind(**given)
    name = next((name for name in _ADDRESSES if name in takes), None)
    if name is not None:
        return kind(**given, **{name: address})
    if "openai_client" not in takes:
        raise ProviderError(f"the provider `{choice.provider}` takes no other address: remove `base_url`")
    # its address is a constant of the class
    moved: type[Provider[Any]] = type(kind.__name__, (kind,), {"base_url": address})
    return moved(**given)

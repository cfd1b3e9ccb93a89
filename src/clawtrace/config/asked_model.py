"""What a file says of a model that clawtrace itself asks: a judge, or who plays the user of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from clawtrace.config.base import ConfigModel

if TYPE_CHECKING:
    from clawtrace.providers.asking import AskedModel

__all__ = ["AskedModelConfig"]


class AskedModelConfig(ConfigModel):
    """Where a model is, and how it is asked."""

    provider: str | None = Field(default=None, min_length=1)
    """The provider, such as `openai`; null: OpenRouter, or with `base_url` a server that speaks OpenAI's protocol."""
    base_url: str | None = Field(default=None, min_length=1)
    """Where the provider's API is, instead of its own address."""
    api_key_env: str | None = Field(default=None, min_length=1)
    """The variable that holds the key, instead of the provider's own."""
    request_options: dict[str, Any] = Field(default_factory=dict)
    """Parameters of each request, such as `temperature` and `reasoning`."""
    retries: int = Field(default=5, ge=0)
    """How often a request is tried again after an outage or a rate limit."""
    timeout_seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False, strict=False)
    """Time for one request."""

    @model_validator(mode="after")
    def _no_key(self) -> AskedModelConfig:
        if any("api_key" in named for named in (self.model_extra or {}, self.request_options)):
            raise ValueError("`api_key` does not belong in a file: name the variable that holds it with `api_key_env`")
        return self

    @property
    def options(self) -> dict[str, Any]:
        """Parameters of each request, wherever they are written."""
        return {**(self.model_extra or {}), **self.request_options}

    def asked(self, model: str) -> AskedModel:
        """Return `model` as it is asked."""
        from clawtrace.providers.asking import AskedModel
        from clawtrace.providers.models import choose_model

        choice = choose_model(model, provider=self.provider, base_url=self.base_url, api_key_env=self.api_key_env)
        return AskedModel(choice, self.options, self.retries, self.timeout_seconds)

"""An agent: a workspace to start from, and what the OpenClaw CLI is told of it (`agent.yaml`; spec: config.md §1)."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from clawtrace.config.base import ConfigModel, SchemaVersion, Slug

__all__ = ["AgentConfig", "OpenClawAgent", "OpenClawFragments", "OpenClawModelDefaults"]

_FALLBACKS = "a run uses exactly one model; `fallbacks` are rejected"


class OpenClawAgent(ConfigModel):
    """The agent's entry in `agents.list`."""

    id: str | None = Field(default=None, min_length=1)
    """The id that the CLI is given (`--agent`); by default the `agent_id`."""
    prompt: str | None = None
    """The system prompt that replaces the CLI's own (`systemPromptOverride`)."""


class OpenClawModelDefaults(ConfigModel):
    """What is said of the run's model."""

    aliases: dict[str, str] = Field(default_factory=dict)
    """`default`: the alias of the run's model."""
    fallbacks: list[str] = Field(default_factory=list)
    """Empty: a run uses exactly one model."""

    @field_validator("aliases")
    @classmethod
    def _one(cls, aliases: dict[str, str]) -> dict[str, str]:
        other = next((name for name in aliases if name != "default"), None)
        if other is not None:
            raise ValueError(f"a run uses one model, whose alias is `default`; found {other!r}")
        return aliases

    @field_validator("fallbacks")
    @classmethod
    def _none(cls, fallbacks: list[str]) -> list[str]:
        if fallbacks:
            raise ValueError(_FALLBACKS)
        return fallbacks


class OpenClawFragments(ConfigModel):
    """What goes into the generated `openclaw.json`."""

    identity: Any = None
    """Refused: the CLI would drop it; a persona belongs into `workspace/IDENTITY.md` and `SOUL.md`."""
    agents_defaults: dict[str, Any] = Field(default_factory=dict)
    """Merged into `agents.defaults`."""
    agent: OpenClawAgent = OpenClawAgent.model_construct()
    """The agent's entry in `agents.list`."""
    model_defaults: OpenClawModelDefaults = OpenClawModelDefaults.model_construct()
    """What is said of the run's model."""

    @field_validator("identity")
    @classmethod
    def _in_the_workspace(cls, identity: Any) -> Any:
        if identity is not None:
            raise ValueError(
                "the OpenClaw CLI does not take `identity` from its configuration; write the persona into "
                "`workspace/IDENTITY.md` and `workspace/SOUL.md`"
            )
        return identity

    @field_validator("agents_defaults")
    @classmethod
    def _one_model(cls, defaults: dict[str, Any]) -> dict[str, Any]:
        model = defaults.get("model")
        if isinstance(model, dict) and model.get("fallbacks"):
            raise ValueError(f"`model`: {_FALLBACKS}")
        return defaults


class AgentConfig(ConfigModel):
    """The file `configs/agents/<agent_id>/agent.yaml`, beside the folder `workspace/`."""

    schema_version: SchemaVersion
    """Version of this file's format."""
    agent_id: Slug
    """The same as the folder's name."""
    title: str
    """A label for people."""
    description: str = ""
    """What the agent is for."""
    tags: list[str] = Field(default_factory=list)
    """Words about the agent, shown in reports."""
    openclaw: OpenClawFragments = OpenClawFragments.model_construct()
    """What goes into the generated `openclaw.json`."""

"""An agent: a workspace to start from, and what is passed to its program (`agent.yaml`; spec: config.md §1)."""

from __future__ import annotations

from pydantic import Field

from clawtrace.config.base import SchemaVersion, Slug
from clawtrace.config.openclaw import AgentProgram

__all__ = ["AgentConfig"]


class AgentConfig(AgentProgram):
    """The file `configs/agents/<agent_id>/agent.yaml`, next to the folder `workspace/`."""

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

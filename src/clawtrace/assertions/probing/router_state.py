"""Router state files: which agents a router chose, in order (spec: assertions.md §6).

Such a file is a YAML or JSON mapping, or a list of them; the agent of each is `selected_agent`, else `agent`, else `to`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clawtrace.assertions.probing.documents import yaml_value

__all__ = ["routed_agents"]


def routed_agents(text: str) -> list[str]:
    """Return the agents that a router state names, in order.

    Raises:
        ValueError: the text is no router state; the message says what it is.
    """
    value = yaml_value(text)
    entries = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, Mapping) for entry in entries):
        raise ValueError("is not a router state: expected a mapping or a list of mappings")
    named = [_agent(entry) for entry in entries]
    return [agent for agent in named if agent is not None]


def _agent(entry: Mapping[str, Any]) -> str | None:
    for key in ("selected_agent", "agent", "to"):
        value = entry.get(key)
        if value is not None:
            return str(value)
    return None

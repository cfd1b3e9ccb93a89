"""The order of a probe's process, as JSON in the run's folder: everything but the messages and the key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clawtrace.providers.models import ModelChoice

__all__ = ["PROVIDER_FAILED", "ProbeOrder"]

PROVIDER_FAILED = 69
"""Exit code of a probe whose provider failed: EX_UNAVAILABLE of sysexits.h."""


@dataclass(frozen=True, slots=True)
class ProbeOrder:
    """One run of a probe."""

    model: ModelChoice
    options: dict[str, Any]
    """Parameters of each request."""
    tools: list[str]
    workspace: str
    """Absolute."""
    history: str
    """Absolute file that holds the conversation between turns."""
    max_turns: int
    retries: int
    retry_wait_seconds: float
    timeout_seconds: float
    """Of one request."""
    tool_timeout_seconds: float
    confined: bool
    """Whether commands are kept inside of the workspace."""
    read_paths: list[str] = field(default_factory=list)
    """Absolute paths outside of the workspace that commands may read."""
    search_url: str | None = None
    search_key_env: str | None = None

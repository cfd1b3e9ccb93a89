"""The order of a probe's process, as JSON in the run's folder: everything but the messages and the key."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from clawtrace.providers.models import ModelChoice

__all__ = ["PROVIDER_FAILED", "ProbeOrder", "read_order", "write_order"]

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


def write_order(order: ProbeOrder, path: Path) -> None:
    """Write an order."""
    path.write_text(json.dumps(asdict(order), ensure_ascii=False), encoding="utf-8")


def read_order(path: Path) -> ProbeOrder:
    """Read an order."""
    return TypeAdapter(ProbeOrder).validate_json(path.read_bytes())

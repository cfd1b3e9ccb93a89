"""An attempt of a run, one that spans record, and a request that nothing was attempted for (spec: certain-and-possible.md §4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from clawtrace.facts.doubts import Doubt, Doubted

__all__ = ["Execution", "Outcome", "RequestReason", "ToolCallRow", "ToolRequestRow"]

Outcome = Literal["ok", "error", "blocked"]
RequestReason = Literal["not-offered", "not-run", "handed-over"]


@dataclass(slots=True, eq=False, repr=False)
class ToolCallRow(Doubted):
    """One row of the relation `tool_calls`: an attempt, or what may have been one."""

    index: int | None
    """Its span; None when it is known from messages only."""
    call_id: str | None
    name: str | None
    agent: int | None
    turn: int | None
    start_ns: int
    end_ns: int | None
    arguments: str | None
    result: str | None
    outcome: Outcome | None
    """None: how it ended is not known."""
    error: str | None
    source: Literal["span", "message", "log"]
    exit_code: int | None
    command: str | None
    """The shell command, where its span records it apart from the arguments."""
    doubts: list[Doubt] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ToolRequestRow:
    """One row of the relation `tool_requests`: asked for, and not attempted."""

    index: int
    """The span of the model call that asked, or of the agent whose conversation records it."""
    call_id: str | None
    name: str
    agent: int | None
    turn: int | None
    asked_ns: int
    arguments: str | None
    result: str | None
    """What the model got for it."""
    reason: RequestReason


@dataclass(slots=True, eq=False, repr=False)
class Execution(ToolCallRow):
    """Tool spans that are one call, and the row itself where no request adds more. Its outcome is the worst of the layers."""

    index: int
    """The outermost layer: it names the call as the model did."""
    group: int = -1

"""Rows of attempted tool calls, executions recorded by spans, and requests without an attempt (spec: certain-and-possible.md §4)."""

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
    """Its span; None if only messages show it."""
    call_id: str | None
    name: str | None
    agent: int | None
    turn: int | None
    start_ns: int
    end_ns: int | None
    arguments: str | None
    result: str | None
    outcome: Outcome | None
    """None: its outcome is unknown."""
    error: str | None
    source: Literal["span", "message", "log"]
    exit_code: int | None
    command: str | None
    """The shell command, if its span records it separately from the arguments."""
    doubts: list[Doubt] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class ToolRequestRow:
    """One row of the relation `tool_requests`: a request without an attempt."""

    index: int
    """The span of the model call that asked, or of the agent whose conversation records it."""
    call_id: str | None
    name: str
    agent: int | None
    turn: int | None
    asked_ns: int
    arguments: str | None
    result: str | None
    """The result that the model received."""
    reason: RequestReason


@dataclass(slots=True, eq=False, repr=False)
class Execution(ToolCallRow):
    """Tool spans that are one call, and its row before a request adds to it. Its outcome is the worst of the layers."""

    index: int
    """The outermost layer, which has the name that the model used."""
    group: int = -1

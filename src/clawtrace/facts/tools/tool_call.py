"""A tool call of a run, and one that was executed (spec: span-model.md §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clawtrace.model.relations import NOT_EXECUTED

__all__ = ["Execution", "Outcome", "ToolCallRow"]

Outcome = Literal["ok", "error", "blocked", "requested", "unexecuted", "unknown"]


@dataclass(slots=True, eq=False, repr=False)
class ToolCallRow:
    """One row of the relation `tool_calls`."""

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
    """None: it was answered, and whether it was executed is not known."""
    error: str | None
    source: Literal["span", "message", "log"]
    exit_code: int | None
    command: str | None
    """The shell command, where its span records it apart from the arguments."""

    @property
    def executed(self) -> bool:
        """Whether it counts as a call: it was executed, or stopped on the way."""
        return self.outcome not in NOT_EXECUTED


@dataclass(slots=True, eq=False, repr=False)
class Execution(ToolCallRow):
    """Tool spans that are one call, and the row itself where no request adds more. Its outcome is the worst of the layers."""

    index: int
    """The outermost layer: it names the call as the model did."""
    group: int

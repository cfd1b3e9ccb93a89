"""One part of one message, in the form that every message format is read into."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Part"]


class Part(NamedTuple):
    """One part of one message."""

    message_no: int
    """1-based within the payload."""
    part_no: int
    """1-based within the message."""
    role: str | None
    type: str
    """text, reasoning, tool_call, tool_call_response, tool_call_refused, server_tool_call, or the payload's own word.

    A `tool_call_refused` answers a call for which no tool was run. A `server_tool_call` is one that the provider itself executes; its result may be in the same answer.
    """
    call_id: str | None
    name: str | None
    text: str | None
    failed: bool | None = None
    """Of a tool's result: whether the tool failed; None where no field of it says."""

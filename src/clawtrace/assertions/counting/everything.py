"""Relations with what a timer started, for questions of what must never happen, and of what was run at all.

Unrequested work (a heartbeat) is in no count. A forbidden tool that was called there was called all the same.
"""

from __future__ import annotations

__all__ = ["EVERY_ATTEMPT", "EVERY_COMMAND", "EVERY_TOOL_CALL"]


def _both(columns: str, relation: str, background: str) -> str:
    return f"(SELECT {columns} FROM {relation} UNION ALL SELECT {columns} FROM {background})"


EVERY_TOOL_CALL = _both(
    "run_id, call_no, span_id, name, arguments, result, outcome, error", "tool_calls", "background_tool_calls"
)
"""In place of ``tool_calls``."""

EVERY_ATTEMPT = (
    "(SELECT run_id, name, outcome, n FROM run_tools"
    " UNION ALL SELECT run_id, name, outcome, 1 AS n FROM background_tool_calls)"
)
"""In place of ``run_tools``."""

EVERY_COMMAND = _both(
    "run_id, tool_call_no, command_no, text, whole, exit_code, ok, last_no", "commands", "background_commands"
)
"""In place of ``commands``."""

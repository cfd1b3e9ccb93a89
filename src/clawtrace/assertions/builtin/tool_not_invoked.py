"""`tool_not_invoked`: a forbidden tool was left alone."""

from __future__ import annotations

from clawtrace.assertions._forbidden_tool import ForbiddenTool

__all__ = ["ToolNotInvoked"]


class ToolNotInvoked(ForbiddenTool):
    """The tool was never attempted: not executed, not failed, not blocked.

    A forbidden tool that was tried is a finding even when it failed or a guard stopped it. A call that the model
    asked for and nothing executed is no attempt. Where the instrumentation cannot record tool calls, nothing is known.

    Example:
        - type: tool_not_invoked
          tool: resend.send
    """

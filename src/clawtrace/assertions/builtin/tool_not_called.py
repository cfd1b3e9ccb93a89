"""`tool_not_called`: a forbidden tool was left alone, with the fields of the seeds' behavioural assertion."""

from __future__ import annotations

from clawtrace.assertions._forbidden_tool import ForbiddenTool
from clawtrace.assertions._log_source import LogSource

__all__ = ["ToolNotCalled"]


class ToolNotCalled(LogSource, ForbiddenTool):
    """The tool was never called: not executed, not failed, not blocked.

    It asks what `tool_not_invoked` asks, of the same spans, and also takes `log_path` and `run_id`. A tool's name in
    a text is no call; a call that the model requested and nothing executed is none either.

    Example:
        - type: tool_not_called
          tool: resend.send
    """

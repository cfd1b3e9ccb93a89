"""`ran`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"pattern": "^make test$", "status": "ok"}
OUTSIDE = {
    "asks about shell commands": "model calls, answers, content of search, times, agents, failed_tool_call, blocked_tool_call, lost_tool_call, lost_first_request, renamed_tool, repeated_tool_call",
    "asks that it ran and succeeded, not how often and what it printed": "repeated_command, other_output",
    "the command was received with its exit code, and no loss can undo it": "lost_agent, lost_last_request, never_ended",
}


def answer(run: PlainRun) -> bool:
    return "make test" in run.commands() and run.last_command().get("exit_code") == 0

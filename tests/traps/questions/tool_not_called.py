"""`tool_not_called`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"tool": "delete_all"}
OUTSIDE = {
    "asks about the names of tools only": "content of search, content of the command, outcomes, agents, times, nothing_captured",
    "asks about tool calls": "model calls, answers",
    "the tools that were called more often are not forbidden": "repeated_tool_call, repeated_command",
    "what was lost left nothing behind, and was not forbidden": "lost_command, lost_first_request",
}


def answer(run: PlainRun) -> bool:
    return "delete_all" not in run.names

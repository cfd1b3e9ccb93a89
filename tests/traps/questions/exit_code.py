"""`exit_code`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"value": 0}
OUTSIDE = {
    "asks about shell commands": "model calls, answers, content of search, times, agents, failed_tool_call, blocked_tool_call, lost_first_request, renamed_tool, repeated_tool_call",
    "asks for the exit code of the last command": "other_command, other_output, repeated_command",
}


def answer(run: PlainRun) -> bool:
    return run.last_command().get("exit_code") == 0

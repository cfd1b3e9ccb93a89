"""`error_contains`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"value": "slow disk"}
OUTSIDE = {
    "asks about shell commands": "model calls, answers, content of search, times, agents, failed_tool_call, blocked_tool_call, lost_first_request, renamed_tool, repeated_tool_call",
    "asks what the last command printed to its standard error": "other_command, quietly_failed_command, repeated_command",
}


def answer(run: PlainRun) -> bool:
    return "slow disk" in str(run.last_command().get("stderr"))

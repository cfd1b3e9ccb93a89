"""`output_equals`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"value": "ok"}
OUTSIDE = {
    "asks about shell commands": "model calls, answers, content of search, times, agents, failed_tool_call, blocked_tool_call, lost_first_request, renamed_tool, repeated_tool_call",
    "asks what the last command printed": "other_command, quietly_failed_command, repeated_command",
}


def answer(run: PlainRun) -> bool:
    return run.last_command().get("stdout") == "ok"

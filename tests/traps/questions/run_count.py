"""`run_count`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"pattern": "^make", "min": 1, "max": 1}
OUTSIDE = {
    "asks about shell commands": "model calls, answers, content of search, times, agents, failed_tool_call, blocked_tool_call, lost_first_request, renamed_tool, repeated_tool_call",
    "asks how often it ran, not how it ended and what ran besides": "failed_command, content of the command",
}


def answer(run: PlainRun) -> bool:
    return sum(command.startswith("make") for command in run.commands()) == 1

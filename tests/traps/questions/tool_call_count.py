"""`tool_call_count`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"count": 3}
OUTSIDE = {
    "asks for the number of calls of all tools together": "renamed_tool, content of search, content of the command, outcomes, agents, times, nothing_captured",
    "asks about tool calls": "model calls, answers",
}


def answer(run: PlainRun) -> bool:
    return len(run.names) == 3

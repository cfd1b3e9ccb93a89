"""`tool_was_called`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"tool": "search"}
OUTSIDE = {
    "asks whether `search` was called, not how often, by whom, when, with what and how it ended": "repeated_tool_call, content of search, outcomes, agents, times, nothing_captured",
    "asks about `search` alone": "content of the command, lost_command, repeated_command",
    "asks about tool calls": "model calls, answers",
    "the call was received, and no loss can undo it": "lost_agent, lost_last_request, never_ended",
}


def answer(run: PlainRun) -> bool:
    return "search" in run.names

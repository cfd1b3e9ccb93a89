"""`span_query`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun, name_of

ASSERTION = {
    "select": {"kind": "tool", "ancestor": {"kind": "agent", "agent_name": "researcher"}},
    "where": {"tool_name": "search", "error": None},
    "count": 1,
}
OUTSIDE = {
    "asks which tool ran under `researcher`, without an error": "model calls, answers, content of search, content of the command, times, failed_command, lost_command, repeated_command, nothing_captured",
    "`researcher` is above it, whichever agent started it and whatever it did besides": "no_delegation, one_more_agent",
    "a blocked call has no error of its own (`status` of `tool_call` asks for it)": "blocked_tool_call",
}


def answer(run: PlainRun) -> bool:
    return [(name_of(span), span.error) for span in run.below("researcher")] == [("search", None)]

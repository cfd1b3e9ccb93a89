"""`llm_call_count`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"min": 4, "max": 4}
OUTSIDE = {
    "asks about model calls": "answers, content of search, content of the command, outcomes, times, agents, nothing_captured, renamed_tool, lost_tool_call, lost_command, repeated_tool_call, repeated_command",
    "asks how many there were, not which and what they used": "renamed_model, more_tokens, unknown_tokens, more_cost",
}


def answer(run: PlainRun) -> bool:
    return len(run.tokens()) == 4

"""`final_response_present`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {}
OUTSIDE = {
    "asks for the last words of the root agent": "model calls, content of search, content of the command, outcomes, times, tools, moved_tool_call, renamed_agent, no_delegation, one_more_agent",
    "another answer is an answer": "other_answer",
}


def answer(run: PlainRun) -> bool:
    return run.last_words() != ""

"""`final_response`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun
from faults import ANSWER

ASSERTION = {"equals": "The report is done."}
OUTSIDE = {
    "asks for the last words of the root agent": "model calls, content of search, content of the command, outcomes, times, tools, moved_tool_call, renamed_agent, no_delegation, one_more_agent",
}


def answer(run: PlainRun) -> bool:
    return run.last_words() == ANSWER

"""`final_response`: the question, what lies outside of it, and its answer over plain spans."""

from answers import Told
from faults import ANSWER

ASSERTION = {"equals": "The report is done."}
OUTSIDE = {
    "asks for the last words of the root agent": "model calls, content of search, content of the command, outcomes, times, tools, moved_tool_call, renamed_agent, one_more_agent",
}


def answer(told: Told) -> bool:
    return told.last_words() == ANSWER

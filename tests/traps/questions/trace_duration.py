"""`trace_duration`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"max_ms": 1000}
OUTSIDE = {
    "asks for the first start and the last end": "model calls, answers, content of search, content of the command, outcomes, agents, tools, nothing_captured, slow_tool_call, swapped",
}


def answer(run: PlainRun) -> bool:
    return max(span.to for span in run.spans) - run.spans[0].at <= 1000

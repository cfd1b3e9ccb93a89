"""`span_duration`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"span_type": "tool", "max_ms": 40}
OUTSIDE = {
    "asks how long tools ran": "model calls, answers, content of search, content of the command, outcomes, agents, longer_run, nothing_captured",
    "the tools that ran instead, again or elsewhere in time ran as long": "renamed_tool, repeated_tool_call, repeated_command, swapped",
    "what was lost left nothing behind, and was fast enough": "lost_tool_call, lost_command, lost_first_request",
}


def answer(run: PlainRun) -> bool:
    return max(span.to - span.at for span in run.tools) <= 40

"""`tool_sequence`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun

ASSERTION = {"mode": "strict", "expected": ["search", "bash", "write_file"]}
OUTSIDE = {
    "asks for the names of the tools in order only": "model calls, answers, content of search, content of the command, agents, nothing_captured",
    "a tool that failed or was blocked was called": "outcomes",
    "the order stayed as it was": "slow_tool_call, longer_run",
}


def answer(run: PlainRun) -> bool:
    return run.names == ["search", "bash", "write_file"]

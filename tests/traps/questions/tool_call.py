"""`tool_call`: the question, what lies outside of it, and its answer over plain spans."""

import json

from answers import PlainRun, arguments_of, name_of, result_of, succeeded

ASSERTION = {
    "tool": "search",
    "args": {"query": "otel"},
    "match": "exact",
    "status": "ok",
    "result_contains": '"hits": 3',
    "by_agent": "researcher",
    "count": {"min": 1, "max": 1},
}
OUTSIDE = {
    "asks about `search` alone": "content of the command, failed_command, lost_command, repeated_command",
    "asks about tool calls, not about models, answers and times": "model calls, answers, times",
    "`researcher` still called it, whichever agent started it and whatever it did besides": "no_delegation, one_more_agent",
}


def answer(run: PlainRun) -> bool:
    fitting = [span for span in run.below("researcher") if name_of(span) == "search" and succeeded(span)]
    return [json.loads(arguments_of(span)) for span in fitting if '"hits": 3' in result_of(span)] == [{"query": "otel"}]

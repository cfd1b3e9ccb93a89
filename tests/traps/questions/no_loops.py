"""`no_loops`: the question, what lies outside of it, and its answer over plain spans."""

import itertools

from answers import PlainRun, arguments_of, name_of

ASSERTION = {"max_repeats": 1}
OUTSIDE = {
    "asks whether a call follows its like": "content of search, content of the command, outcomes, times, agents, renamed_tool, nothing_captured",
    "asks about tool calls": "model calls, answers",
    "what was lost left nothing behind, and repeated nothing": "lost_command, lost_first_request",
}


def answer(run: PlainRun) -> bool:
    return not _loops(run)


def _loops(run: PlainRun) -> bool:
    called = [(name_of(span), arguments_of(span)) for span in run.tools]
    return any(one == following for one, following in itertools.pairwise(called))

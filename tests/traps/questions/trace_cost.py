"""`trace_cost`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun, within

ASSERTION = {"max_usd": 0.04}
OUTSIDE = {
    "asks about the cost of model calls": "answers, content of search, content of the command, outcomes, times, agents, tools, nothing_captured",
    "the cost that the span states counts, whatever the model and the tokens": "renamed_model, more_tokens",
    "what was lost left nothing behind, and with it all is within the budget": "lost_model_call",
    "a call that failed cost nothing": "failed_model_call",
}


def answer(run: PlainRun) -> bool:
    return within(run.costs(), 0.04)

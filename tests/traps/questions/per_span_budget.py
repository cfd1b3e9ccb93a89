"""`per_span_budget`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun, within

ASSERTION = {"max_tokens": 110}
OUTSIDE = {
    "asks about the tokens of model calls": "answers, content of search, content of the command, outcomes, times, agents, tools, nothing_captured, more_cost, renamed_model",
    "one call more is within the budget of one call": "repeated_model_call",
    "what was lost left nothing behind, and was within the budget": "lost_model_call",
    "a call that failed used nothing": "failed_model_call",
}


def answer(run: PlainRun) -> bool:
    return all(within([used], 110) for used in run.tokens())

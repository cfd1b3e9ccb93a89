"""`trace_token_budget`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun, within

ASSERTION = {"max_total_tokens": 440}
OUTSIDE = {
    "asks about the tokens of model calls": "answers, content of search, content of the command, outcomes, times, agents, tools, nothing_captured, more_cost, renamed_model",
    "what was lost left nothing behind, and with it all is within the budget": "lost_model_call",
    "a call that failed used nothing": "failed_model_call",
}


def answer(run: PlainRun) -> bool:
    return within(run.tokens(), 440)

"""`model_used`: the question, what lies outside of it, and its answer over plain spans."""

import re

from answers import PlainRun

ASSERTION = {"only": ["gpt-4o"]}
OUTSIDE = {
    "asks for the models of model calls only": "answers, content of search, content of the command, outcomes, times, agents, tools, nothing_captured",
    "asks for models, not for what calls used or how many there were": "repeated_model_call, failed_model_call, more_tokens, unknown_tokens, more_cost",
    "what was lost left nothing behind, and used the model that is right": "lost_model_call",
}


def answer(run: PlainRun) -> bool:
    return all(_bare(call.attributes["gen_ai.request.model"]) == "gpt-4o" for call in run.calls)


def _bare(model: object) -> str:
    return re.sub(r"-\d{4}-\d\d-\d\d$", "", str(model))

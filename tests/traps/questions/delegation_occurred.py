"""`delegation_occurred`: the question, what lies outside of it, and its answer over plain spans."""

from answers import Told, agent_of

ASSERTION = {"to_agent": "researcher"}
OUTSIDE = {
    "asks about agents, not about what they did": "model calls, answers, content of search, content of the command, outcomes, times, tools, moved_tool_call, nothing_captured",
    "an agent that comes after it leaves the delegation as it is": "one_more_agent",
    "the delegation was received, and nothing can undo it": "never_ended",
}


def answer(told: Told) -> bool:
    return any(agent_of(span) == "researcher" and told.agent_above(span) is not None for span in told.agents)

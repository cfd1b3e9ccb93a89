"""`delegation_occurred`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun, agent_of

ASSERTION = {"to_agent": "researcher"}
OUTSIDE = {
    "asks about agents, not about what they did": "model calls, answers, content of search, content of the command, outcomes, times, tools, moved_tool_call, nothing_captured",
    "an agent that comes after it leaves the delegation as it is": "one_more_agent",
    "the delegation was received, and nothing can undo it": "never_ended",
}


def answer(run: PlainRun) -> bool:
    return any(agent_of(span) == "researcher" and run.agent_above(span) is not None for span in run.agents)

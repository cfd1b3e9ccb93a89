"""`delegation_path`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun, agent_of

ASSERTION = {"mode": "path", "expected": ["orchestrator", "researcher"]}
OUTSIDE = {
    "asks about agents, not about what they did": "model calls, answers, content of search, content of the command, outcomes, times, tools, moved_tool_call, nothing_captured",
    "an agent that comes after the path leaves the path as it is": "one_more_agent",
}


def answer(run: PlainRun) -> bool:
    roots = [span.id for span in run.agents if not span.parent and agent_of(span) == "orchestrator"]
    return any(span.parent in roots and agent_of(span) == "researcher" for span in run.agents)

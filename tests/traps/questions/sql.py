"""`sql`: the question, what lies outside of it, and its answer over plain spans."""

from answers import PlainRun, agent_of, name_of, outcome_of

ASSERTION = {
    "select": (
        "SELECT name, outcome FROM tool_calls WHERE run_id = :run_id "
        "UNION ALL SELECT name, via FROM agents WHERE run_id = :run_id"
    ),
    "expect": [
        {"name": "search", "outcome": "ok"},
        {"name": "bash", "outcome": "ok"},
        {"name": "write_file", "outcome": "ok"},
        {"name": "orchestrator", "outcome": "root"},
        {"name": "researcher", "outcome": "nesting"},
    ],
}
OUTSIDE = {
    "this query asks for tools with their outcome, and for agents with how they came to work": "model calls, answers, content of search, content of the command, times, moved_tool_call, nothing_captured",
}


def answer(run: PlainRun) -> bool:
    tools = sorted((name_of(span), outcome_of(span)) for span in run.tools)
    agents = sorted((agent_of(span), "nesting" if span.parent else "root") for span in run.agents)
    wanted = [("bash", "ok"), ("search", "ok"), ("write_file", "ok")]
    return tools == wanted and agents == [("orchestrator", "root"), ("researcher", "nesting")]

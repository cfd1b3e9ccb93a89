# /// script
# dependencies = [
#     "strands-agents[openai,otel]==1.62.0",
#     "opentelemetry-sdk",
#     "opentelemetry-exporter-otlp-proto-http",
# ]
# [tool.soak]
# instrumentations = ["native"]
# helpers = ["tool"]
# patterns = ["graph", "side-by-side", "swarm"]
# pseudo-tools = ["handoff_to_agent"]
# ///
"""Agents of Strands, which writes its spans itself."""

from __future__ import annotations

from typing import Any

from agent_program import MODEL, TOOLS, Job, logged, main, system
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.multiagent import GraphBuilder, Swarm


def run(job: Job) -> str | None:
    model = OpenAIModel(client_args={"base_url": job.url, "api_key": "none"}, model_id=MODEL)
    tools: list[Any] = [tool(function) for function in TOOLS.values()]
    quiet: Any = {"callback_handler": None, "model": model}
    if job.helper == "tool":
        researcher = Agent(name="researcher", system_prompt=system("researcher"), tools=tools[:2], **quiet)

        def ask_researcher(question: str) -> str:
            """Ask the researcher."""
            return str(researcher(question))

        tools.append(tool(logged(ask_researcher)))
    if job.helper in ("graph", "side-by-side", "swarm"):
        return _team(job, tools, quiet)
    agent = Agent(name="assistant", system_prompt=system("assistant"), tools=tools, **quiet)
    said = None
    for turn in job.turns:
        said = agent(turn)
    return None if said is None else str(said)


def _team(job: Job, tools: list[Any], quiet: Any) -> str:
    """Return what the last of two agents answers, which are nodes of a graph or hand over to each other."""
    works = {"graph": "alone", "side-by-side": "beside assistant", "swarm": "within assistant"}[job.helper or ""]
    assistant = Agent(name="assistant", system_prompt=system("assistant", "alone"), tools=tools, **quiet)
    writer = Agent(name="writer", system_prompt=system("writer", works), tools=tools, **quiet)
    if job.helper == "swarm":
        said = Swarm([assistant, writer], max_handoffs=3)(job.turns[0])
        last = said.results[said.node_history[-1].node_id].result
    else:
        builder = GraphBuilder()
        builder.add_node(assistant, "assistant")
        builder.add_node(writer, "writer")
        if job.helper == "graph":
            builder.add_edge("assistant", "writer")
            builder.set_entry_point("assistant")
        last = builder.build()(job.turns[0]).results["writer"].result
    if isinstance(last, Exception):
        raise last
    return str(last)


if __name__ == "__main__":
    main(run, {"native": lambda _: None}, together=2)

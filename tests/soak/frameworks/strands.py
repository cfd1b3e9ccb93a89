# /// script
# dependencies = [
#     "strands-agents[openai,otel]==1.62.0",
#     "opentelemetry-sdk",
#     "opentelemetry-exporter-otlp-proto-http",
# ]
# [tool.soak]
# instrumentations = ["native"]
# helpers = ["tool"]
# ///
"""Agents of Strands, which writes its spans itself."""

from __future__ import annotations

from typing import Any

from agent_program import MODEL, TOOLS, Job, logged, main, system
from strands import Agent, tool
from strands.models.openai import OpenAIModel


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
    agent = Agent(name="assistant", system_prompt=system("assistant"), tools=tools, **quiet)
    said = None
    for turn in job.turns:
        said = agent(turn)
    return None if said is None else str(said)


if __name__ == "__main__":
    main(run, {"native": lambda _: None}, together=2)

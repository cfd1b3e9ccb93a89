# /// script
# dependencies = [
#     "agent-framework-core==1.23.0",
#     "agent-framework-openai==1.17.0",
#     "agent-framework-orchestrations==1.4.0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["native"]
# helpers = ["tool"]
# patterns = ["given-up", "read-in-part", "sequence", "side-by-side"]
# ///
"""Agents of Microsoft's Agent Framework, which writes its spans itself; over Responses and over Chat Completions."""

from __future__ import annotations

from typing import Any

from agent_framework import Agent
from agent_framework.observability import enable_instrumentation
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from agent_framework.orchestrations import ConcurrentBuilder, SequentialBuilder
from agent_program import MODEL, TOOLS, Job, logged, main, read_in_part, system, within_time


def run(job: Job) -> str | None:
    return within_time(_run(job), job)


async def _run(job: Job) -> str | None:
    client = (OpenAIChatClient if job.count_stream else OpenAIChatCompletionClient)(
        MODEL, base_url=job.url, api_key="none"
    )
    tools: list[Any] = list(TOOLS.values())
    researcher = Agent(client, system("researcher"), name="researcher", tools=tools[:2])

    async def ask_researcher(question: str) -> str:
        """Ask the researcher."""
        return (await researcher.run(question)).text

    if job.helper == "tool":
        tools.append(logged(ask_researcher))
    agent = Agent(client, system("assistant"), name="assistant", tools=tools)
    if job.helper in ("sequence", "side-by-side"):
        works = "alone" if job.helper == "sequence" else "beside assistant"
        both = [agent, Agent(client, system("writer", works), name="writer", tools=tools)]
        builder: Any = SequentialBuilder if job.helper == "sequence" else ConcurrentBuilder
        said = (await builder(participants=both).build().run(job.turns[0])).get_outputs()[-1]
        return (said if isinstance(said, list) else said.messages)[-1].text
    session, output = agent.create_session(), None
    for turn in job.turns:
        if job.helper == "read-in-part":
            await read_in_part(agent.run(turn, stream=True, session=session), job)
        if job.stream:
            said = agent.run(turn, stream=True, session=session)
            async for _ in said:
                pass
            answer = await said.get_final_response()
        else:
            answer = await agent.run(turn, session=session)
        output = answer.messages[-1].text if answer.messages else None
    return output


if __name__ == "__main__":
    main(run, {"native": lambda _: enable_instrumentation(enable_sensitive_data=True, force=True)}, together=3)

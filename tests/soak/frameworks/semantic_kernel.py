# /// script
# dependencies = [
#     "semantic-kernel==1.45.0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["native"]
# helpers = ["tool"]
# patterns = ["given-up", "read-in-part", "sequence", "side-by-side"]
# ///
"""Agents of Semantic Kernel, which writes its spans itself."""

from __future__ import annotations

import os
from typing import Any

os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE"] = "true"

from agent_program import MODEL, Job, logged, main, read_in_part, system, tools_as, within_time
from openai import AsyncOpenAI
from semantic_kernel.agents import (
    ChatCompletionAgent,
    ChatHistoryAgentThread,
    ConcurrentOrchestration,
    SequentialOrchestration,
)
from semantic_kernel.agents.runtime import InProcessRuntime
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import KernelPlugin, kernel_function


def run(job: Job) -> str | None:
    return within_time(_run(job), job)


async def _run(job: Job) -> str | None:
    service = OpenAIChatCompletion(ai_model_id=MODEL, async_client=AsyncOpenAI(base_url=job.url, api_key="none"))

    def agent(name: str, tools: list[Any], works: str = "") -> ChatCompletionAgent:
        functions = [kernel_function(tool, name=tool.__name__, description=tool.__doc__) for tool in tools]
        plugin = KernelPlugin(name="lab", functions=functions)
        return ChatCompletionAgent(service=service, name=name, instructions=system(name, works), plugins=[plugin])

    tools: list[Any] = list(tools_as("lab-").values())
    researcher = agent("researcher", tools[:2])

    async def ask_researcher(question: str) -> str:
        """Ask the researcher."""
        return str(await researcher.get_response(question))

    if job.helper == "tool":
        tools.append(logged(ask_researcher, "lab-ask_researcher"))
    if job.helper in ("sequence", "side-by-side"):
        writer = agent("writer", tools, "alone" if job.helper == "sequence" else "beside assistant")
        kind: Any = SequentialOrchestration if job.helper == "sequence" else ConcurrentOrchestration
        runtime = InProcessRuntime()
        runtime.start()
        asked = await kind([agent("assistant", tools), writer]).invoke(job.turns[0], runtime)
        said = await asked.get(timeout=60)
        await runtime.stop_when_idle()
        return str(said[-1] if isinstance(said, list) else said)
    assistant, thread, output = agent("assistant", tools), ChatHistoryAgentThread(), None
    for turn in job.turns:
        if job.helper == "read-in-part":
            await read_in_part(assistant.invoke_stream(turn, thread=thread), job)
        if job.stream:
            output = ""
            async for part in assistant.invoke_stream(turn, thread=thread):
                output += str(part)
                thread = part.thread
        else:
            answer = await assistant.get_response(turn, thread=thread)
            output, thread = str(answer), answer.thread
    return output


if __name__ == "__main__":
    main(run, {"native": lambda _: None})

# /// script
# dependencies = [
#     "pydantic-ai-slim[openai]==2.68.0",
#     "openinference-instrumentation-pydantic-ai==0.1.30",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["native", "native,openinference"]
# helpers = ["tool"]
# ///
"""Agents of Pydantic AI."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

sys.path.remove(sys.path[0])  # this file has the framework's name

from agent_program import MODEL, TOOLS, Job, logged, main, system
from pydantic_ai import Agent, Tool
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def run(job: Job) -> str | None:
    return asyncio.run(_run(job))


async def _run(job: Job) -> str | None:
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=job.url, api_key="none"))
    tools = [Tool(tool, takes_ctx=False) for tool in TOOLS.values()]
    agent = Agent(model, name="assistant", system_prompt=system("assistant"), tools=tools, retries=2)
    if job.helper == "tool":
        researcher = Agent(model, name="researcher", system_prompt=system("researcher"), tools=tools[:2])

        async def ask_researcher(question: str) -> str:
            """Ask the researcher."""
            return (await researcher.run(question)).output

        agent.tool_plain(logged(ask_researcher))
    history, output = None, None
    for turn in job.turns:
        said = await agent.run(turn, message_history=history, event_stream_handler=_read if job.stream else None)
        history, output = said.all_messages(), said.output
    return output


async def _read(_: Any, events: Any) -> None:
    async for _ in events:
        pass


def _native(provider: Any) -> None:
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor

    provider._active_span_processor._span_processors = (
        OpenInferenceSpanProcessor(),
        *provider._active_span_processor._span_processors,
    )


if __name__ == "__main__":
    main(run, {"native": _native, "openinference": _openinference}, together=3)

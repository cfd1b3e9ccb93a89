# /// script
# dependencies = [
#     "pydantic-ai-slim[openai]==2.68.0",
#     "openinference-instrumentation-pydantic-ai==0.1.30",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["native", "native,openinference", "format2"]
# helpers = ["tool"]
# patterns = ["given-up", "read-in-part", "parallel", "approval", "answer", "function", "validator", "fallback", "run-stream"]
# [tool.soak.environments]
# logfire = ["pydantic-ai-slim[openai]==2.68.0", "logfire==5.2.0", "opentelemetry-exporter-otlp-proto-http==1.45.2"]
# anthropic = [
#     "pydantic-ai-slim[anthropic]==2.68.0", "anthropic==2.12.0", "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# ///
"""Agents of Pydantic AI, over OpenAI's SDK or over Anthropic's, which writes spans, too."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from typing import Any

from agent_program import MODEL, TOOLS, Job, NamesRun, logged, main, read_in_part, system, within_time
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelRetry, NativeOutput, Tool
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.instrumented import InstrumentationSettings


class Answer(BaseModel):
    """An answer that has a form."""

    answer: int


def final_answer(answer: str) -> str:
    """Give the final answer."""
    return answer


def run(job: Job) -> str | None:
    return within_time(_run(job), job)


async def _run(job: Job) -> str | None:
    model = _anthropic_model(job) if sys.argv[1] == "anthropic" else _openai_model(job)
    if job.helper == "fallback":
        model = FallbackModel(model, _anthropic_model(job) if sys.argv[1] == "anthropic" else _openai_model(job))
    tools = [Tool(tool, takes_ctx=False) for tool in TOOLS.values()]
    more: dict[str, Any] = {}
    if job.helper == "approval":
        tools[0] = Tool(TOOLS["get_weather"], takes_ctx=False, requires_approval=True)
        more["output_type"] = [str, DeferredToolRequests]
    elif job.helper == "answer" and sys.argv[1] != "anthropic":
        more["output_type"] = NativeOutput(Answer)
    elif job.helper == "function":
        more["output_type"] = final_answer
    agent = Agent(model, name="assistant", system_prompt=system("assistant"), tools=tools, retries=2, **more)
    if job.helper == "validator":

        @agent.output_validator
        def check(output: str) -> str:
            if output.startswith("It is"):
                raise ModelRetry("Say it in other words.")
            return output

    if job.helper == "parallel":
        writer = Agent(model, name="writer", system_prompt=system("writer", "beside assistant"), tools=tools)
        return (await asyncio.gather(agent.run(job.turns[0]), writer.run(job.turns[0])))[1].output
    if job.helper == "tool":
        researcher = Agent(model, name="researcher", system_prompt=system("researcher"), tools=tools[:2])

        async def ask_researcher(question: str) -> str:
            """Ask the researcher."""
            return (await researcher.run(question)).output

        agent.tool_plain(logged(ask_researcher))
    history, output = None, None
    for turn in job.turns:
        if job.helper == "read-in-part":
            async with agent.iter(turn) as steps:
                await read_in_part(steps, job)
        if job.helper == "run-stream":
            async with agent.run_stream(turn, message_history=history) as streamed:
                history, output = None, await streamed.get_output()
            history = streamed.all_messages()
            continue
        said = await agent.run(turn, message_history=history, event_stream_handler=_read if job.stream else None)
        while isinstance(said.output, DeferredToolRequests):
            approved = DeferredToolResults(approvals={call.tool_call_id: True for call in said.output.approvals})
            said = await agent.run(message_history=said.all_messages(), deferred_tool_results=approved)
        history, output = said.all_messages(), said.output
    return output.model_dump_json() if isinstance(output, Answer) else output


def _openai_model(job: Job) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    more: dict[str, Any] = {}
    if version("pydantic-ai-slim").startswith("1."):
        # It keeps its client, which belongs to the loop of one run.
        from httpx import AsyncClient

        more["http_client"] = AsyncClient(timeout=60)
    provider = OpenAIProvider(base_url=job.url, api_key="none", **more)
    return OpenAIChatModel(MODEL, provider=provider)


def _anthropic_model(job: Job) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(MODEL, provider=AnthropicProvider(base_url=job.url.removesuffix("/v1"), api_key="none"))


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


def _format2(provider: Any) -> None:
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider, version=2))


def _logfire(_: Any) -> None:
    import logfire

    # It exports to the endpoint of the environment.
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[NamesRun()], metrics=False)
    logfire.instrument_pydantic_ai()


INSTRUMENT = {
    "native": _native, "openinference": _openinference, "format2": _format2, "logfire": _logfire, "anthropic": _native,
}  # fmt: skip

if __name__ == "__main__":
    main(run, INSTRUMENT, together=3)

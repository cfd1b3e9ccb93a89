# /// script
# dependencies = [
#     "openai-agents==0.24.0",
#     "openinference-instrumentation-openai-agents==2.6.0",
#     "opentelemetry-instrumentation-openai-agents==0.62.4",
#     "opentelemetry-instrumentation-genai-openai-agents==1.3b0",
#     "opentelemetry-instrumentation-genai-openai==1.3b0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["openinference", "openllmetry", "genai", "openinference,openllmetry"]
# helpers = ["handoff", "tool"]
# pseudo-tools = ["transfer_to_researcher"]
# [tool.soak.environments]
# mlflow = [
#     "openai-agents==0.24.0", "openai==3.54.0", "mlflow-skinny==3.17.2", "mlflow-tracing==3.17.2", "pandas==3.1.1",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# logfire = ["openai-agents==0.24.0", "openai==3.54.0", "logfire==5.2.0", "opentelemetry-exporter-otlp-proto-http==1.45.2"]
# ///
"""Agents of the OpenAI Agents SDK, over Responses and over Chat Completions."""

from __future__ import annotations

import asyncio

from agent_program import MODEL, TOOLS, Job, NamesRun, autolog, logged, main, system
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from openai import AsyncOpenAI


def run(job: Job) -> str | None:
    return asyncio.run(_run(job))


async def _run(job: Job) -> str | None:
    client = AsyncOpenAI(base_url=job.url, api_key="none")
    kind = OpenAIResponsesModel if job.count_stream else OpenAIChatCompletionsModel
    model = kind(model=MODEL, openai_client=client)
    tools = [function_tool(tool) for tool in TOOLS.values()]
    researcher = Agent(name="researcher", instructions=system("researcher"), tools=tools[:2], model=model)
    handoffs = [researcher] if job.helper == "handoff" else []

    async def ask_researcher(question: str) -> str:
        """Ask the researcher."""
        return str((await Runner.run(researcher, question)).final_output)

    if job.helper == "tool":
        tools.append(function_tool(logged(ask_researcher)))
    agent = Agent(name="assistant", instructions=system("assistant"), tools=tools, handoffs=handoffs, model=model)
    items, output = [], None
    for turn in job.turns:
        asked = [*items, {"role": "user", "content": turn}]
        if job.stream:
            said = Runner.run_streamed(agent, asked)
            async for _ in said.stream_events():
                pass
        else:
            said = await Runner.run(agent, asked)
        items, agent, output = said.to_input_list(), said.last_agent, str(said.final_output)
    return output


def _openinference(provider: object) -> None:
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


def _openllmetry(provider: object) -> None:
    from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


def _genai(provider: object) -> None:
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
    from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


def _mlflow(_: object) -> None:
    autolog("openai")


def _logfire(_: object) -> None:
    import logfire

    # It exports to the endpoint of the environment.
    logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[NamesRun()], metrics=False)
    logfire.instrument_openai_agents()


INSTRUMENT = {
    "openinference": _openinference, "openllmetry": _openllmetry, "genai": _genai, "mlflow": _mlflow, "logfire": _logfire,
}  # fmt: skip

if __name__ == "__main__":
    main(run, INSTRUMENT, together=3)

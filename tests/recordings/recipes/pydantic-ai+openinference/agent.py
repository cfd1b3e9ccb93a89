"""Pydantic AI's own spans, to which OpenInference's processor adds its attributes."""

import asyncio

import lab
from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = TracerProvider()
provider.add_span_processor(OpenInferenceSpanProcessor())
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
Agent.instrument_all()
MODEL = OpenAIChatModel(lab.MODEL, provider=OpenAIProvider(base_url=lab.URL, api_key="scripted"))


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        helper = Agent(MODEL, name="researcher", system_prompt=lab.RESEARCHER_SYSTEM, tools=lab.TOOLS)
        return (await helper.run(query)).output


async def main() -> str:
    tools = [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS
    agent = Agent(MODEL, name="assistant", system_prompt=lab.SYSTEM, tools=tools)
    if lab.SCENARIO != "streaming":
        return (await agent.run(lab.QUESTION)).output
    async with agent.run_stream(lab.QUESTION) as result:
        return await result.get_output()


try:
    lab.answer(asyncio.run(main()))
finally:
    provider.shutdown()

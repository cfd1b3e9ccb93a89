"""Agents of Microsoft's Agent Framework, whose own spans OpenInference's processor rewrites."""

import asyncio

import lab
from agent_framework import Agent
from agent_framework.observability import enable_instrumentation
from agent_framework.openai import OpenAIChatCompletionClient
from openinference.instrumentation.agent_framework import AgentFrameworkToOpenInferenceProcessor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(AgentFrameworkToOpenInferenceProcessor())
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
enable_instrumentation(enable_sensitive_data=True, force=True)
CLIENT = OpenAIChatCompletionClient(lab.MODEL, base_url=lab.URL, api_key="none")


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return (await Agent(CLIENT, lab.RESEARCHER_SYSTEM, name="researcher", tools=lab.TOOLS).run(query)).text


async def main() -> str:
    tools = [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS
    agent = Agent(CLIENT, lab.SYSTEM, name="assistant", tools=tools)
    if lab.SCENARIO == "streaming":
        said = agent.run(lab.QUESTION, stream=True)
        async for _ in said:
            pass
        return (await said.get_final_response()).messages[-1].text
    session = agent.create_session()
    said = await agent.run(lab.QUESTION, session=session)
    if lab.SCENARIO == "two_turns":
        said = await agent.run("And in Oslo?", session=session)
    return said.messages[-1].text


try:
    lab.answer(asyncio.run(main()))
finally:
    provider.shutdown()

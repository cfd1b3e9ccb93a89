"""Pydantic AI's agent, instrumented by DeepEval's settings, which export to Confident AI by OTLP."""

import os

import lab

os.environ["CONFIDENT_OTEL_URL"] = lab.ENDPOINT
from deepeval.integrations.pydantic_ai import DeepEvalInstrumentationSettings
from opentelemetry import trace
from pydantic_ai import Agent

Agent.instrument_all(DeepEvalInstrumentationSettings(api_key="none"))


def agent(name: str, system: str, tools: list) -> Agent:
    return Agent(f"openai-chat:{lab.MODEL}", name=name, system_prompt=system, tools=tools, retries=1)


research = agent("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS)


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return (await research.run(query)).output


assistant = agent("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS)
try:
    lab.answer(assistant.run_sync(lab.QUESTION).output)
finally:
    trace.get_tracer_provider().shutdown()

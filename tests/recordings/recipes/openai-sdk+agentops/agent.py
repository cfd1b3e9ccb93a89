"""A plain loop of OpenAI calls under AgentOps: its instrumentation of the SDK, its decorators of agents and tools."""

import os

import lab
from agentops import instrumentation
from agentops.sdk.core import tracer
from agentops.sdk.decorators import agent, tool, trace

tracer.initialize(
    exporter_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces",
    metrics_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/metrics",
)
instrumentation.instrument_all()
from openai import OpenAI  # noqa: E402

client = OpenAI(max_retries=0)
TOOLS = {one.__name__: tool(name=one.__name__)(one) for one in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@agent(name="researcher")
def research(query: str) -> str:
    return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@tool(name="researcher")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return research(query)


@agent(name="assistant")
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


@trace(name="answer_question")
def main() -> str:
    return assistant(lab.QUESTION)


try:
    lab.answer(main())
finally:
    tracer.shutdown()

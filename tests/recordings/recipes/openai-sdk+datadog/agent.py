"""A plain loop of OpenAI calls under Datadog's tracer, which exports OTLP: its integration, and its decorators of agents and tools."""

import lab
from ddtrace import tracer
from ddtrace.llmobs import LLMObs
from ddtrace.llmobs.decorators import agent, tool
from openai import OpenAI

LLMObs.enable(ml_app="weather", agentless_enabled=False)
client = OpenAI(max_retries=0)
TOOLS = {one.__name__: tool(one) for one in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@tool
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return research(query)


@agent(name="researcher")
def research(query: str) -> str:
    return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@agent
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


try:
    lab.answer(assistant(lab.QUESTION))
finally:
    LLMObs.disable()
    tracer.shutdown()

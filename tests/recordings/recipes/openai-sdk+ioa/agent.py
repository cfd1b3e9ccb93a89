"""A plain loop of OpenAI calls, whose functions are decorated with AGNTCY's Observe SDK."""

import lab
from ioa_observe.sdk import Observe
from ioa_observe.sdk.decorators import agent, tool
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

Observe.init("agent", exporter=OTLPSpanExporter(), disable_batch=True, telemetry_enabled=False)

from openai import OpenAI  # noqa: E402

client = OpenAI()
TOOLS = {each.__name__: tool(name=each.__name__)(each) for each in lab.TOOLS}


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


lab.answer(assistant(lab.QUESTION))

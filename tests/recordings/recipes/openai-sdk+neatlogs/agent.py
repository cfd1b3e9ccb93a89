"""A plain loop of OpenAI calls under NeatLogs: its instrumentation of the SDK, and its decorator of agents and tools."""

import os

import lab
import neatlogs

neatlogs.init(
    api_key="none",
    endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"],
    workflow_name="weather",
    instrumentations=["openai"],
)

from openai import OpenAI  # noqa: E402

client = OpenAI(max_retries=0)
TOOLS = {tool.__name__: neatlogs.span(kind="TOOL", name=tool.__name__)(tool) for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@neatlogs.span(kind="TOOL", name="researcher")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return research(query)


@neatlogs.span(kind="AGENT", name="researcher")
def research(query: str) -> str:
    return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@neatlogs.span(kind="AGENT", name="assistant")
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


@neatlogs.span(kind="WORKFLOW", name="weather")
def main() -> str:
    return assistant(lab.QUESTION)


try:
    lab.answer(main())
finally:
    neatlogs.flush()
    neatlogs.shutdown()

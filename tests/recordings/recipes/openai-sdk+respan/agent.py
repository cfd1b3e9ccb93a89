"""A plain loop of OpenAI calls through Respan: its instrumentation of the SDK, and its decorators on agents and tools."""

import lab
from respan_tracing import Instruments, RespanTelemetry
from respan_tracing.decorators import agent, tool

telemetry = RespanTelemetry(
    app_name="agent",
    api_key="none",
    base_url=lab.ENDPOINT,
    instruments={Instruments.OPENAI},
    is_batching_enabled=False,
)

from openai import OpenAI  # noqa: E402

client = OpenAI()
TOOLS = {one.__name__: tool(name=one.__name__)(one) for one in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@agent(name="researcher")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@agent(name="assistant")
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


try:
    lab.answer(assistant(lab.QUESTION))
finally:
    telemetry.flush()

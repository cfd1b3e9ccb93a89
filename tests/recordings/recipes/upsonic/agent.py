"""Upsonic's agents, with their own spans."""

import lab
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from upsonic import Agent, Task
from upsonic.integrations.tracing import TracingProvider
from upsonic.tools import tool


class Exporting(TracingProvider):
    def _create_exporter(self):
        return OTLPSpanExporter()


provider = Exporting(service_name="agent")
TOOLS = [tool(max_retries=0)(one) for one in lab.TOOLS]  # it would retry within one span


def agent(name: str, instructions: str) -> Agent:
    return Agent("openai/gpt-4o", name=name, system_prompt=instructions, instrument=provider, retry=1)


@tool
def researcher(query: str) -> str:
    """Ask the researcher.

    Args:
        query: what to ask
    """
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return str(agent("researcher", lab.RESEARCHER_SYSTEM).do(Task(query, tools=TOOLS)))


tools = [researcher] if lab.SCENARIO == "delegation" else TOOLS
try:
    lab.answer(str(agent("assistant", lab.SYSTEM).do(Task(lab.QUESTION, tools=tools))))
finally:
    provider.flush()

"""A plain loop of OpenAI calls in functions that Lilypad traces, with its own spans of the SDK."""

import lab
import lilypad
from openai import OpenAI
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

lilypad.configure(
    api_key="scripted", project_id="00000000-0000-0000-0000-000000000000", base_url=lab.ENDPOINT, auto_llm=True
)
provider = trace.get_tracer_provider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
client = OpenAI(max_retries=0)
TOOLS = {tool.__name__: lilypad.trace(tool.__name__)(tool) for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@lilypad.trace("researcher")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@lilypad.trace("assistant")
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


try:
    lab.answer(assistant(lab.QUESTION))
finally:
    provider.shutdown()

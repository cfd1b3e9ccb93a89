"""A plain loop of OpenAI calls under Basalt: OpenLLMetry's instrumentation of the SDK, its own decorators of functions and tools."""

import lab
from basalt import Basalt, TelemetryConfig
from basalt.observability import observe, start_observe
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

basalt = Basalt(
    api_key="none", telemetry_config=TelemetryConfig(exporter=OTLPSpanExporter(), enabled_providers=["openai"])
)

from openai import OpenAI  # noqa: E402

client = OpenAI(max_retries=0)
TOOLS = {one.__name__: observe(name=one.__name__, kind="tool")(one) for one in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@observe(name="researcher", kind="tool")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return research(query)


@observe(name="researcher", kind="function")
def research(query: str) -> str:
    return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@start_observe(feature_slug="weather", name="assistant")
def assistant(question: str) -> str:
    observe.set_input(question)
    said = lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)
    observe.set_output(said)
    return said


try:
    lab.answer(assistant(lab.QUESTION))
finally:
    basalt.shutdown()

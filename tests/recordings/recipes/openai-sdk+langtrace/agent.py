"""A plain loop of OpenAI calls through Langtrace: its instrumentation of the SDK, and its decorators."""

import lab
from langtrace_python_sdk import langtrace
from langtrace_python_sdk.utils.with_root_span import with_langtrace_root_span
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

langtrace.init(batch=False, custom_remote_exporter=OTLPSpanExporter(), api_host=lab.ENDPOINT, service_name="agent")

from openai import OpenAI  # noqa: E402

client = OpenAI()
TOOLS = {tool.__name__: with_langtrace_root_span(tool.__name__)(tool) for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@with_langtrace_root_span("researcher")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@with_langtrace_root_span("assistant")
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


lab.answer(assistant(lab.QUESTION))

"""Mellea's ReAct loop, with its own spans."""

import asyncio

import lab
import mellea.telemetry  # noqa: F401
from mellea.backends.openai import OpenAIBackend
from mellea.backends.tools import MelleaTool
from mellea.stdlib.context import ChatContext
from mellea.stdlib.frameworks.react import react
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
backend = OpenAIBackend(model_id=lab.MODEL, base_url=lab.URL, api_key="scripted")
TOOLS = [MelleaTool.from_callable(tool) for tool in lab.TOOLS]


async def ask(question: str, tools: list) -> str:
    result, _ = await react(goal=question, context=ChatContext(), backend=backend, tools=tools)
    return str(result)


async def researcher(query: str) -> str:
    """Ask the researcher.

    Args:
        query: what to ask
    """
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return await ask(query, TOOLS)


tools = [MelleaTool.from_callable(researcher)] if lab.SCENARIO == "delegation" else TOOLS
try:
    lab.answer(asyncio.run(ask(lab.QUESTION, tools)))
finally:
    trace.get_tracer_provider().shutdown()

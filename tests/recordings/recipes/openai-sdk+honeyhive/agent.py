"""A plain loop of OpenAI calls through HoneyHive's tracer, with OpenInference's instrumentation of the SDK."""

import lab
from honeyhive import HoneyHiveTracer, trace
from openinference.instrumentation.openai import OpenAIInstrumentor

tracer = HoneyHiveTracer.init(
    api_key="none",
    project="agent",
    server_url=lab.ENDPOINT,
    disable_batch=True,
    session_id="0190a8c3-8f6e-4b7a-9d3e-5f1c2b7a9d3e",
)
OpenAIInstrumentor().instrument(tracer_provider=tracer.provider)

from openai import OpenAI  # noqa: E402

client = OpenAI()
TOOLS = {tool.__name__: trace(event_type="tool", event_name=tool.__name__, tracer=tracer)(tool) for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@trace(event_type="chain", event_name="researcher", tracer=tracer)
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@trace(event_type="chain", event_name="assistant", tracer=tracer)
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


lab.answer(assistant(lab.QUESTION))
tracer.force_flush()

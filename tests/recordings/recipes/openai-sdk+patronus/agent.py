"""A plain loop of OpenAI calls, in Patronus: OpenInference for the SDK, and its decorator on agents and tools."""

import lab
from openinference.instrumentation.openai import OpenAIInstrumentor
from patronus import init, traced

init(
    api_key="none",
    otel_endpoint=lab.ENDPOINT,
    otel_exporter_otlp_protocol="http/protobuf",
    integrations=[OpenAIInstrumentor()],
)

from openai import OpenAI  # noqa: E402

client = OpenAI()
TOOLS = {one.__name__: traced()(one) for one in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@traced()
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@traced()
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


lab.answer(assistant(lab.QUESTION))

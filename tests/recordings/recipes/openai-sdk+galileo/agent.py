"""A plain loop of OpenAI calls in Galileo's spans of workflows and tools, over OpenInference's spans of the SDK."""

import json

import lab
from galileo.otel import start_galileo_span
from galileo_core.schemas.logging.span import ToolSpan, WorkflowSpan
from openai import OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor

provider = lab.export()
OpenAIInstrumentor().instrument(tracer_provider=provider)
client = OpenAI(max_retries=0)


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


def traced(tool):
    def call(**given):
        span = ToolSpan(name=tool.__name__, input=json.dumps(given))
        with start_galileo_span(span):
            span.output = tool(**given)
            return span.output

    call.__name__, call.__doc__, call.__wrapped__ = tool.__name__, tool.__doc__, tool
    return call


TOOLS = {tool.__name__: traced(tool) for tool in lab.TOOLS}


def run(name: str, system: str, question: str, tools: dict) -> str:
    span = WorkflowSpan(name=name, input=question)
    with start_galileo_span(span):
        span.output = lab.loop(asking, system, question, tools)
        return span.output


@traced
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return run("researcher", lab.RESEARCHER_SYSTEM, query, TOOLS)


try:
    lab.answer(
        run(
            "assistant", lab.SYSTEM, lab.QUESTION, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS
        )
    )
finally:
    provider.shutdown()

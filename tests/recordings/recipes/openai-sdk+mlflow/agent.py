"""A plain loop of OpenAI calls through MLflow: its autolog of the SDK, and its decorator on agents and tools."""

import lab
import mlflow
from mlflow.entities import SpanType

mlflow.openai.autolog()

from openai import OpenAI  # noqa: E402

client = OpenAI()
TOOLS = {tool.__name__: mlflow.trace(tool, span_type=SpanType.TOOL) for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


@mlflow.trace(span_type=SpanType.AGENT)
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, TOOLS)


@mlflow.trace(span_type=SpanType.AGENT)
def assistant(question: str) -> str:
    return lab.loop(asking, lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


try:
    lab.answer(assistant(lab.QUESTION))
finally:
    mlflow.flush_trace_async_logging()

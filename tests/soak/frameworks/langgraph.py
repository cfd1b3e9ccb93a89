# /// script
# dependencies = [
#     "langchain==1.4.7",
#     "langgraph==1.2.22",
#     "langchain-openai==1.7.3",
#     "openinference-instrumentation-langchain==0.1.80",
#     "opentelemetry-instrumentation-langchain==0.62.4",
#     "opentelemetry-instrumentation-genai-langchain==1.3b0",
#     "langsmith==0.15.0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = [
#     "openinference", "openllmetry", "genai", "langsmith", "openinference,langsmith", "openinference,openllmetry",
# ]
# helpers = ["tool"]
# [tool.soak.environments]
# langfuse = [
#     "langchain==1.4.7", "langgraph==1.2.22", "langchain-openai==1.7.3", "langfuse==5.0.4",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# mlflow = [
#     "langchain==1.4.7", "langgraph==1.2.22", "langchain-openai==1.7.3", "mlflow-skinny==3.17.2", "mlflow-tracing==3.17.2",
#     "pandas==3.1.1", "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# ///
"""An agent of LangChain, which is a graph of LangGraph."""

from __future__ import annotations

import os
import sys
from typing import Any

if "langsmith" in sys.argv[1]:
    os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, autolog, logged, main, system
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_core.tracers.langchain import wait_for_all_tracers
from langchain_openai import ChatOpenAI
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


def run(job: Job) -> str | None:
    if "langsmith" not in sys.argv[1]:
        return _run(job)
    # LangSmith writes its spans later, in a separate thread: they hang below the span that was open when a run began.
    try:
        with trace.get_tracer("soak").start_as_current_span("job"):
            return _run(job)
    finally:
        wait_for_all_tracers()


def _run(job: Job) -> str | None:
    usage = job.count_stream if job.stream else None
    model = ChatOpenAI(model=MODEL, base_url=job.url, api_key="none", streaming=job.stream, stream_usage=usage)
    tools = [StructuredTool.from_function(tool, handle_tool_error=True) for tool in TOOLS.values()]
    if job.helper == "tool":
        researcher = create_agent(model, tools[:2], system_prompt=system("researcher"), name="researcher")

        def ask_researcher(question: str) -> str:
            """Ask the researcher."""
            said = researcher.invoke({"messages": [("user", question)]}, {"recursion_limit": 4 * MAX_STEPS})
            return said["messages"][-1].text

        tools.append(StructuredTool.from_function(logged(ask_researcher)))
    agent = create_agent(model, tools, system_prompt=system("assistant"), name="assistant")
    settings: Any = {"recursion_limit": 4 * MAX_STEPS, "callbacks": _callbacks()}
    messages: list[Any] = []
    for turn in job.turns:
        messages = agent.invoke({"messages": [*messages, ("user", turn)]}, settings)["messages"]
    return messages[-1].text


def _callbacks() -> list[Any]:
    if sys.argv[1] != "langfuse":
        return []
    from langfuse.langchain import CallbackHandler

    return [CallbackHandler()]


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)


def _openllmetry(provider: Any) -> None:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument(tracer_provider=provider)


def _genai(provider: Any) -> None:
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)


def _langfuse(provider: Any) -> None:
    from langfuse import Langfuse

    # Its own exporter sends nothing: the provider's does.
    Langfuse(public_key="none", secret_key="none", tracer_provider=provider, span_exporter=InMemorySpanExporter())


INSTRUMENT = {
    "openinference": _openinference, "openllmetry": _openllmetry, "genai": _genai, "langsmith": lambda _: None,
    "langfuse": _langfuse, "mlflow": lambda _: autolog("langchain"),
}  # fmt: skip

if __name__ == "__main__":
    main(run, INSTRUMENT, together=3)

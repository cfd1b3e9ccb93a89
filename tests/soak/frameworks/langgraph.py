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
# patterns = [
#     "nodes", "side-by-side", "fan-out", "approval", "answer", "stream", "async", "summary", "fallback", "given-up", "read-in-part",
# ]
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

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, autolog, logged, main, read_in_part, system, within_time
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware, SummarizationMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.tools import StructuredTool
from langchain_core.tracers.langchain import wait_for_all_tracers
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
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
    if job.helper in ("nodes", "side-by-side", "fan-out"):
        return _graph(job, model, tools)
    if job.helper == "tool":
        researcher = create_agent(model, tools[:2], system_prompt=system("researcher"), name="researcher")

        def ask_researcher(question: str) -> str:
            """Ask the researcher."""
            said = researcher.invoke({"messages": [("user", question)]}, {"recursion_limit": 4 * MAX_STEPS})
            return said["messages"][-1].text

        tools.append(StructuredTool.from_function(logged(ask_researcher)))
    more: dict[str, Any] = {}
    if job.helper == "approval":
        tools[0] = StructuredTool.from_function(
            _approved, name="get_weather", description="Return the weather of a city."
        )
        more["checkpointer"] = InMemorySaver()
    elif job.helper == "answer":
        more["response_format"] = ToolStrategy(
            {
                "title": "final_answer",
                "type": "object",
                "properties": {"answer": {"type": "string"}},
                "required": ["answer"],
            }
        )
    elif job.helper == "summary":
        more["middleware"] = [SummarizationMiddleware(model, trigger=("messages", 4), keep=("messages", 2))]
    elif job.helper == "fallback":
        more["middleware"] = [ModelFallbackMiddleware(model.model_copy(update={"model_name": "gpt-4o-mini"}))]
    agent = create_agent(model, tools, system_prompt=system("assistant"), name="assistant", **more)
    settings = _settings()
    messages: list[Any] = []
    for number, turn in enumerate(job.turns):
        if job.helper == "approval":
            settings["configurable"] = {"thread_id": str(number)}
        said = _turn(job, agent, {"messages": [*messages, ("user", turn)]}, settings)
        while said.get("__interrupt__"):
            answers = {one.id: True for one in said["__interrupt__"]}
            said = agent.invoke(Command(resume=answers), settings)
        messages = said["messages"]
        answer = (said.get("structured_response") or {}).get("answer")
    return messages[-1].text if answer is None else answer


def _turn(job: Job, agent: Any, asked: Any, settings: Any) -> dict[str, Any]:
    """Return what a turn ended with; read step by step where the job says so."""
    if job.helper in ("async", "given-up"):
        return within_time(agent.ainvoke(asked, settings), job)
    if job.helper == "read-in-part":
        within_time(read_in_part(agent.astream(asked, settings, stream_mode="messages"), job), job)
    if job.helper != "stream":
        return agent.invoke(asked, settings)
    return list(agent.stream(asked, settings, stream_mode="values"))[-1]


def _approved(city: str) -> str:
    """Return the weather of a city once a person approved."""
    interrupt({"city": city})
    return TOOLS["get_weather"](city)


def _graph(job: Job, model: ChatOpenAI, tools: list[Any]) -> str:
    """Return the last answer of a graph whose nodes are two agents, one after the other or side by side; or one, three times at once."""
    beside = job.helper == "side-by-side"
    assistant = create_agent(model, tools, system_prompt=system("assistant", "alone"), name="assistant")
    works = {"side-by-side": "beside assistant", "fan-out": "beside writer"}
    writes = system("writer", works.get(job.helper or "", "alone"))
    writer = create_agent(model, tools, system_prompt=writes, name="writer")
    graph = StateGraph(MessagesState)
    graph.add_node("assistant", assistant)
    graph.add_node("writer", writer)
    if job.helper == "fan-out":
        turns = [Send("writer", {"messages": [("user", f"{job.turns[0]} Part {part}.")]}) for part in range(3)]
        graph.add_conditional_edges(START, lambda _: turns, ["writer"])
        graph.add_edge("writer", END)
        return graph.compile().invoke({"messages": []}, _settings())["messages"][-1].text
    graph.add_edge(START, "assistant")
    graph.add_edge(START if beside else "assistant", "writer")
    graph.add_edge("writer", END)
    said = graph.compile().invoke({"messages": [("user", job.turns[0])]}, _settings())
    return said["messages"][-1].text


def _settings() -> Any:
    return {"recursion_limit": 4 * MAX_STEPS, "callbacks": _callbacks()}


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

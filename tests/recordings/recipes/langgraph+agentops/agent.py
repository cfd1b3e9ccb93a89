"""LangGraph's agents under AgentOps, whose instrumentation of this LangGraph fails to start: only the session has a span."""

import os

import lab
from agentops import instrumentation
from agentops.sdk.core import tracer

tracer.initialize(
    exporter_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces",
    metrics_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/metrics",
)
instrumentation.instrument_all()
from langchain.agents import create_agent  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

MODEL = ChatOpenAI(model=lab.MODEL, stream_usage=True, max_retries=0)
TOOLS = [tool(one) for one in lab.TOOLS]


def ask(agent, text: str) -> str:
    asked = {"messages": [{"role": "user", "content": text}]}
    if lab.SCENARIO == "streaming":
        for _, state in agent.stream(asked, stream_mode=["messages", "values"]):
            last = state
        return last["messages"][-1].text
    return agent.invoke(asked)["messages"][-1].text


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return ask(create_agent(MODEL, TOOLS, system_prompt=lab.RESEARCHER_SYSTEM, name="researcher"), query)


try:
    trace = tracer.start_trace(trace_name="session")
    try:
        tools = [tool(researcher)] if lab.SCENARIO == "delegation" else TOOLS
        lab.answer(ask(create_agent(MODEL, tools, system_prompt=lab.SYSTEM, name="assistant"), lab.QUESTION))
    finally:
        tracer.end_trace(trace)
finally:
    tracer.shutdown()

"""LangGraph's agents, recorded by TruLens."""

import lab
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_openai import ChatOpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from trulens.apps.langgraph import TruGraph
from trulens.core import TruSession

session = TruSession(span_exporter=OTLPSpanExporter())
MODEL = ChatOpenAI(model=lab.MODEL, streaming=lab.SCENARIO == "streaming", stream_usage=True)
TOOLS = [tool(one) for one in lab.TOOLS]


def agent(name: str, instructions: str, tools: list):
    return create_agent(MODEL, tools=tools, system_prompt=instructions, name=name)


@tool
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return (
            agent("researcher", lab.RESEARCHER_SYSTEM, TOOLS)
            .invoke({"messages": [("user", query)]})["messages"][-1]
            .content
        )


root = agent("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else TOOLS)
recorder = TruGraph(root, app_name="lab", app_version="1")
try:
    with recorder:
        lab.answer(root.invoke({"messages": [("user", lab.QUESTION)]})["messages"][-1].content)
finally:
    session.force_flush()

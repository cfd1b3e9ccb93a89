"""LangChain's agents, recorded by the tracer of its Azure integration."""

import lab

provider = lab.export()

from langchain.agents import create_agent  # noqa: E402
from langchain_azure_ai.callbacks.tracers import AzureAIOpenTelemetryTracer  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: E402

MODEL = ChatOpenAI(model=lab.MODEL, stream_usage=True, max_retries=0)
TOOLS = [tool(one) for one in lab.TOOLS]
TRACER = AzureAIOpenTelemetryTracer(name="assistant", enable_content_recording=True, auto_configure_azure_monitor=False)


def ask(agent, messages: list, config: dict | None = None) -> list:
    asked = {"messages": messages}
    if lab.SCENARIO == "streaming":
        for _, state in agent.stream(asked, config, stream_mode=["messages", "values"]):
            last = state
        return last["messages"]
    return agent.invoke(asked, config)["messages"]


def user(text: str) -> dict:
    return {"role": "user", "content": text}


@tool
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        one = create_agent(MODEL, TOOLS, system_prompt=lab.RESEARCHER_SYSTEM, name="researcher")
        return ask(one, [user(query)])[-1].text


def workflow():
    """Return a graph that runs an agent in one of its nodes."""
    one = create_agent(MODEL, TOOLS, system_prompt=lab.RESEARCHER_SYSTEM, name="researcher")
    graph = StateGraph(MessagesState)
    graph.add_node("researcher", one)
    graph.add_edge(START, "researcher")
    graph.add_edge("researcher", END)
    return graph.compile(name="assistant")


tools = [researcher] if lab.SCENARIO == "delegation" else TOOLS
agent = create_agent(MODEL, tools, system_prompt=lab.SYSTEM, name="assistant")
try:
    messages = []
    for text in [lab.QUESTION, "And in Oslo?"] if lab.SCENARIO == "two_turns" else [lab.QUESTION]:
        asked = workflow() if lab.SCENARIO == "workflow" else agent
        messages = ask(asked, [*messages, user(text)], {"callbacks": [TRACER]})
    lab.answer(messages[-1].text)
finally:
    provider.shutdown()

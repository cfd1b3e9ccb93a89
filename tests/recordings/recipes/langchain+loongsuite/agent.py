"""LangChain's agents, recorded by Alibaba's LoongSuite."""

import lab
from opentelemetry.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.instrumentation.langgraph import LangGraphInstrumentor

provider = lab.export()
LangChainInstrumentor().instrument(tracer_provider=provider)
LangGraphInstrumentor().instrument(tracer_provider=provider)

from langchain.agents import create_agent  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: E402

MODEL = ChatOpenAI(model=lab.MODEL, stream_usage=True)
TOOLS = [tool(one) for one in lab.TOOLS]


def ask(agent, text: str) -> str:
    asked = {"messages": [{"role": "user", "content": text}]}
    if lab.SCENARIO == "streaming":
        for _, state in agent.stream(asked, stream_mode=["messages", "values"]):
            last = state
        return last["messages"][-1].text
    return agent.invoke(asked)["messages"][-1].text


def as_tool(name: str, system: str):
    one = create_agent(MODEL, TOOLS, system_prompt=system, name=name)

    def run(query: str) -> str:
        """Ask another agent."""
        with lab.logged(name, {"query": query}, kind="agent_as_tool"):
            return ask(one, query)

    run.__name__ = name
    return tool(run)


def workflow():
    """Return a graph that runs an agent in one of its nodes."""
    one = create_agent(MODEL, TOOLS, system_prompt=lab.RESEARCHER_SYSTEM, name="researcher")
    graph = StateGraph(MessagesState)
    graph.add_node("research", lambda state: {"messages": one.invoke(state)["messages"][-1:]})
    graph.add_edge(START, "research")
    graph.add_edge("research", END)
    return graph.compile(name="assistant")


tools = [as_tool("researcher", lab.RESEARCHER_SYSTEM)] if lab.SCENARIO == "delegation" else TOOLS
try:
    if lab.SCENARIO == "workflow":
        lab.answer(ask(workflow(), lab.QUESTION))
    else:
        lab.answer(ask(create_agent(MODEL, tools, system_prompt=lab.SYSTEM, name="assistant"), lab.QUESTION))
finally:
    provider.shutdown()

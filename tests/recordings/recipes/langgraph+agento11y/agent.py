"""LangChain's agents under Grafana's Agent Observability: its callback handler, one for each agent."""

import lab
from agento11y import Client, ClientConfig
from agento11y_langgraph import with_agento11y_langgraph_callbacks
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

provider = lab.export()
client = Client(ClientConfig(tracer_provider=provider, use_experimental_otel=True))
MODEL = ChatOpenAI(model=lab.MODEL, stream_usage=True, max_retries=0)
TOOLS = [tool(one) for one in lab.TOOLS]


def run(name: str, system: str, question: str, tools: list) -> str:
    agent = create_agent(MODEL, tools, system_prompt=system, name=name)
    config = with_agento11y_langgraph_callbacks(
        None, client=client, provider_resolver="auto", agent_name=name, agent_version="1", capture_workflow_steps=True
    )
    asked = {"messages": [{"role": "user", "content": question}]}
    if lab.SCENARIO == "streaming":
        for _, state in agent.stream(asked, config=config, stream_mode=["messages", "values"]):
            last = state
        return last["messages"][-1].text
    return agent.invoke(asked, config=config)["messages"][-1].text


@tool
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return run("researcher", lab.RESEARCHER_SYSTEM, query, TOOLS)


try:
    lab.answer(run("assistant", lab.SYSTEM, lab.QUESTION, [researcher] if lab.SCENARIO == "delegation" else TOOLS))
finally:
    client.shutdown()
    provider.shutdown()

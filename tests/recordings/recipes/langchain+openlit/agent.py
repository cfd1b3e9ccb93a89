"""LangChain's agent through OpenLIT."""

import lab
import openlit

openlit.init(application_name="agent", disable_metrics=True, disable_batch=True)

from langchain.agents import create_agent  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

MODEL = ChatOpenAI(model=lab.MODEL, streaming=lab.SCENARIO == "streaming", stream_usage=True)


def run(name: str, instructions: str, tools: list, question: str) -> str:
    agent = create_agent(MODEL, tools=tools, system_prompt=instructions, name=name)
    return agent.invoke({"messages": [("user", question)]})["messages"][-1].content


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return run("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS, query)


lab.answer(run("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS, lab.QUESTION))

"""LangGraph's agents through Traceloop's SDK, its decorators around them."""

import lab
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import agent as traced_agent
from traceloop.sdk.decorators import workflow

Traceloop.init(app_name="agent", disable_batch=True, api_endpoint=lab.ENDPOINT)

from langchain.agents import create_agent  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

MODEL = ChatOpenAI(model=lab.MODEL, streaming=lab.SCENARIO == "streaming", stream_usage=True)


def run(name: str, instructions: str, tools: list, question: str) -> str:
    agent = create_agent(MODEL, tools=tools, system_prompt=instructions, name=name)
    return agent.invoke({"messages": [("user", question)]})["messages"][-1].content


@traced_agent(name="researcher")
def research(query: str) -> str:
    return run("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS, query)


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return research(query)


@workflow(name="answer_question")
def main() -> str:
    return run("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS, lab.QUESTION)


lab.answer(main())

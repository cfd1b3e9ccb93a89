"""LangChain's agents through Orq's callback handler, which writes OTLP by itself."""

import lab
from orq_ai_sdk.langchain import setup, teardown

setup(api_key="none", api_url=lab.ENDPOINT)

import langchain.agents  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

MODEL = ChatOpenAI(model=lab.MODEL, stream_usage=True, max_retries=0)
TOOLS = [tool(one) for one in lab.TOOLS]


def ask(agent, messages: list) -> list:
    asked = {"messages": messages}
    if lab.SCENARIO == "streaming":
        for _, state in agent.stream(asked, stream_mode=["messages", "values"]):
            last = state
        return last["messages"]
    return agent.invoke(asked)["messages"]


def user(text: str) -> dict:
    return {"role": "user", "content": text}


@tool
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        one = langchain.agents.create_agent(MODEL, TOOLS, system_prompt=lab.RESEARCHER_SYSTEM, name="researcher")
        return ask(one, [user(query)])[-1].text


tools = [researcher] if lab.SCENARIO == "delegation" else TOOLS
agent = langchain.agents.create_agent(MODEL, tools, system_prompt=lab.SYSTEM, name="assistant")
try:
    messages = []
    for text in [lab.QUESTION, "And in Oslo?"] if lab.SCENARIO == "two_turns" else [lab.QUESTION]:
        messages = ask(agent, [*messages, user(text)])
    lab.answer(messages[-1].text)
finally:
    teardown()

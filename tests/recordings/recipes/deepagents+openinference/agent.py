"""Deep Agents through OpenInference's instrumentation of LangChain: a sub-agent is a call of the tool `task`."""

import lab
from openinference.instrumentation.langchain import LangChainInstrumentor

provider = lab.export()
LangChainInstrumentor().instrument(tracer_provider=provider)

from deepagents import create_deep_agent  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

MODEL = ChatOpenAI(model=lab.MODEL, stream_usage=True, max_retries=0)
TOOLS = [tool(one) for one in lab.TOOLS]
RESEARCHER = {
    "name": "researcher",
    "description": "Finds things out.",
    "system_prompt": lab.RESEARCHER_SYSTEM,
    "tools": TOOLS,
}


def ask(agent, messages: list) -> list:
    asked = {"messages": messages}
    if lab.SCENARIO == "streaming":
        for _, state in agent.stream(asked, stream_mode=["messages", "values"]):
            last = state
        return last["messages"]
    return agent.invoke(asked)["messages"]


agent = create_deep_agent(model=MODEL, tools=TOOLS, system_prompt=lab.SYSTEM, subagents=[RESEARCHER], name="assistant")
try:
    messages = []
    for text in [lab.QUESTION, "And in Oslo?"] if lab.SCENARIO == "two_turns" else [lab.QUESTION]:
        messages = ask(agent, [*messages, {"role": "user", "content": text}])
    lab.answer(messages[-1].text)
finally:
    provider.force_flush()

"""LangChain's agent, with the instrumentation of AWS' distribution of OpenTelemetry."""

import lab

provider = lab.export()
from amazon.opentelemetry.distro.instrumentation.langchain import LangChainInstrumentor  # noqa: E402

LangChainInstrumentor().instrument(tracer_provider=provider)
from langchain.agents import create_agent  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

model = ChatOpenAI(model=lab.MODEL, streaming=lab.SCENARIO == "streaming", stream_usage=True, max_retries=2)
TOOLS = [tool(function) for function in lab.TOOLS]
for each in TOOLS:
    each.handle_tool_error = lab.SCENARIO != "tool_raises"


def ask(agent, question: str) -> str:
    return agent.invoke({"messages": [{"role": "user", "content": question}]})["messages"][-1].content


@tool
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return ask(create_agent(model, TOOLS, system_prompt=lab.RESEARCHER_SYSTEM, name="researcher"), query)


tools = [researcher] if lab.SCENARIO == "delegation" else TOOLS
assistant = create_agent(model, tools, system_prompt=lab.SYSTEM, name="assistant")
try:
    lab.answer(ask(assistant, lab.QUESTION))
finally:
    provider.shutdown()

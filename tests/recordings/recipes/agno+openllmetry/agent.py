"""Agno through OpenLLMetry: its own package and that of the OpenAI SDK below it."""

import lab
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from opentelemetry.instrumentation.agno import AgnoInstrumentor
from opentelemetry.instrumentation.openai import OpenAIInstrumentor

provider = lab.export()
AgnoInstrumentor().instrument(tracer_provider=provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)


def agent(name: str, system: str, tools: list) -> Agent:
    return Agent(
        name=name,
        model=OpenAIChat(id=lab.MODEL, base_url=lab.URL, api_key="scripted"),
        instructions=system,
        tools=tools,
    )


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return agent("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS).run(query).content


first = agent("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS)
if lab.SCENARIO == "streaming":
    said = "".join(event.content or "" for event in first.run(lab.QUESTION, stream=True) if event.event == "RunContent")
else:
    result = first.run(lab.QUESTION)
    if result.status.value == "ERROR":
        raise SystemExit(1)
    said = result.content
lab.answer(said)

"""Agno through OpenLIT."""

from pathlib import Path

import lab
import openlit
from agno.agent import Agent
from agno.models.openai import OpenAIChat

Path("pricing.json").write_text("{}", encoding="utf-8")  # else it is fetched from a network
openlit.init(disable_metrics=True, disable_batch=True, application_name="agent", pricing_json="pricing.json")


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

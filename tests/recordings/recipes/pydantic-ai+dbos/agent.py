"""Pydantic AI's agent as a DBOS workflow: its own spans in DBOS' spans of workflows and steps."""

import asyncio
import functools

import lab
from dbos import DBOS
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.durable_exec.dbos import DBOSAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = lab.export()
Agent.instrument_all()
MODEL = OpenAIChatModel(lab.MODEL, provider=OpenAIProvider(base_url=lab.URL, api_key="scripted"))
DBOS(config={"name": "weather", "system_database_url": "sqlite:///dbos.sqlite", "enable_otlp": True})


def _retried(tool):
    @DBOS.step()
    @functools.wraps(tool)
    async def call(*positional, **named):
        try:
            return tool(*positional, **named)
        except RuntimeError as error:
            raise ModelRetry(str(error)) from error

    return call


TOOLS = [_retried(tool) for tool in lab.TOOLS]
helper = DBOSAgent(Agent(MODEL, name="researcher", system_prompt=lab.RESEARCHER_SYSTEM, tools=TOOLS))


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return (await helper.run(query)).output


agent = DBOSAgent(
    Agent(
        MODEL,
        name="assistant",
        system_prompt=lab.SYSTEM,
        tools=[researcher] if lab.SCENARIO == "delegation" else TOOLS,
    )
)


async def main() -> str:
    DBOS.launch()
    return (await agent.run(lab.QUESTION)).output


try:
    lab.answer(asyncio.run(main()))
finally:
    DBOS.destroy()
    provider.shutdown()

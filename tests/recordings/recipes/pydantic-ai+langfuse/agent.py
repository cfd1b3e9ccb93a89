"""Pydantic AI's own spans through Langfuse's client, below an observed function."""

import asyncio
import functools

import lab
from langfuse import Langfuse, observe
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = lab.export()
Langfuse(public_key="pk", secret_key="sk", base_url=lab.URL.removesuffix("/v1"), tracer_provider=provider)
Agent.instrument_all()
MODEL = OpenAIChatModel(lab.MODEL, provider=OpenAIProvider(base_url=lab.URL, api_key="scripted"))


def _retried(tool):
    @functools.wraps(tool)
    def call(*positional, **named):
        try:
            return tool(*positional, **named)
        except RuntimeError as error:
            raise ModelRetry(str(error)) from error

    return call


TOOLS = [_retried(tool) for tool in lab.TOOLS]


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        helper = Agent(MODEL, name="researcher", system_prompt=lab.RESEARCHER_SYSTEM, tools=TOOLS)
        return (await helper.run(query)).output


@observe()
async def main(question: str) -> str:
    tools = [researcher] if lab.SCENARIO == "delegation" else TOOLS
    agent = Agent(MODEL, name="assistant", system_prompt=lab.SYSTEM, tools=tools)
    if lab.SCENARIO != "streaming":
        return (await agent.run(question)).output
    async with agent.run_stream(question) as result:
        return await result.get_output()


try:
    lab.answer(asyncio.run(main(lab.QUESTION)))
finally:
    provider.shutdown()

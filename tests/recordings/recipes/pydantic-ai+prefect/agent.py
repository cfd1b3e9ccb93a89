"""Pydantic AI's agent as a Prefect flow: its own spans in Prefect's spans of flows and tasks."""

import asyncio

import lab

provider = lab.export()

from prefect import flow  # noqa: E402
from prefect.testing.utilities import prefect_test_harness  # noqa: E402
from pydantic_ai import Agent, ModelRetry  # noqa: E402
from pydantic_ai.durable_exec.prefect import PrefectDurability  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402

Agent.instrument_all()
MODEL = OpenAIChatModel(lab.MODEL, provider=OpenAIProvider(base_url=lab.URL, api_key="scripted"))


async def refund_order(order_id: str) -> str:
    """Refund an order."""
    try:
        return lab.refund_order(order_id)
    except RuntimeError as error:
        raise ModelRetry(str(error)) from error


TOOLS = [*lab.TOOLS[:3], refund_order]


def agent(name: str, instructions: str, tools: list) -> Agent:
    return Agent(MODEL, name=name, system_prompt=instructions, tools=tools, capabilities=[PrefectDurability()])


helper = agent("researcher", lab.RESEARCHER_SYSTEM, TOOLS)


@flow(name="research")
async def research(query: str) -> str:
    return (await helper.run(query)).output


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return await research(query)


first = agent("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else TOOLS)


@flow(name="weather")
async def main() -> str:
    return (await first.run(lab.QUESTION)).output


try:
    with prefect_test_harness():
        lab.answer(asyncio.run(main()))
finally:
    provider.shutdown()

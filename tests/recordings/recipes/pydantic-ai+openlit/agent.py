"""Pydantic AI under OpenLIT, which also instruments the model's SDK."""

import asyncio

import lab
import openlit
from opentelemetry import trace

openlit.init(application_name="weather", environment="test", disable_metrics=True)

from pydantic_ai import Agent, ModelRetry  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402

MODEL = OpenAIChatModel(lab.MODEL, provider=OpenAIProvider(base_url=lab.URL, api_key="scripted"))


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        helper = Agent(MODEL, name="researcher", system_prompt=lab.RESEARCHER_SYSTEM, tools=lab.TOOLS)
        return (await helper.run(query)).output


async def refund_order(order_id: str) -> str:
    """Refund an order."""
    try:
        return lab.refund_order(order_id)
    except RuntimeError as error:
        raise ModelRetry(str(error)) from error


async def main() -> str:
    tools = [researcher] if lab.SCENARIO == "delegation" else [*lab.TOOLS[:3], refund_order]
    agent = Agent(MODEL, name="assistant", system_prompt=lab.SYSTEM, tools=tools)
    if lab.SCENARIO != "streaming":
        return (await agent.run(lab.QUESTION)).output
    async with agent.run_stream(lab.QUESTION) as result:
        return await result.get_output()


try:
    lab.answer(asyncio.run(main()))
finally:
    trace.get_tracer_provider().shutdown()

"""Ragbits' agents, traced by its own handler of OpenTelemetry."""

import asyncio

import lab
from ragbits.core.audit.traces import set_trace_handlers

provider = lab.export()
set_trace_handlers("otel")

from ragbits.agents import Agent  # noqa: E402
from ragbits.core.llms import LiteLLM  # noqa: E402

LLM = LiteLLM(model_name=lab.MODEL, api_base=lab.URL, api_key="scripted")


def agent(name: str, system: str, tools: list) -> Agent:
    return Agent(llm=LLM, name=name, description=f"The {name}.", prompt=system, tools=tools)


async def researcher(query: str) -> str:
    """Ask the researcher.

    Args:
        query: what to find out
    """
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return (await agent("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS).run(query)).content


async def main() -> str:
    first = agent("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS)
    if lab.SCENARIO == "streaming":
        return "".join([part async for part in first.run_streaming(lab.QUESTION) if isinstance(part, str)])
    return (await first.run(lab.QUESTION)).content


try:
    lab.answer(asyncio.run(main()))
finally:
    provider.shutdown()

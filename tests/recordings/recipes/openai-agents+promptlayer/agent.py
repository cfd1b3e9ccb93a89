"""OpenAI's Agents SDK under PromptLayer's processor of its traces."""

import asyncio

import lab
from promptlayer.integrations.openai_agents import instrument_openai_agents

provider = lab.export()
instrument_openai_agents(tracer_provider=provider)

from agents import (  # noqa: E402
    Agent,
    Runner,
    function_tool,
    set_default_openai_api,
)

set_default_openai_api("chat_completions")
TOOLS = [function_tool(tool) for tool in lab.TOOLS]


def agent(name: str, instructions: str, tools: list, **more: object) -> Agent:
    return Agent(name=name, instructions=instructions, tools=tools, model=lab.MODEL, **more)


def as_tool(name: str, instructions: str):
    one = agent(name, instructions, TOOLS)

    async def run(query: str) -> str:
        with lab.logged(name, {"query": query}, kind="agent_as_tool"):
            return str((await Runner.run(one, query)).final_output)

    run.__name__ = name
    run.__doc__ = "Ask another agent."
    return function_tool(run)


async def main() -> str:
    researcher = ("researcher", lab.RESEARCHER_SYSTEM)
    if lab.SCENARIO == "handoff":
        root = agent("assistant", lab.SYSTEM, [], handoffs=[agent(*researcher, TOOLS)])
    elif lab.SCENARIO == "delegation":
        root = agent("assistant", lab.SYSTEM, [as_tool(*researcher)])
    elif lab.SCENARIO == "parallel_agents":
        root = agent(
            "assistant", lab.SYSTEM, [as_tool(*researcher), as_tool("statistician", "You are the statistician.")]
        )
    else:
        root = agent("assistant", lab.SYSTEM, TOOLS)
    if lab.SCENARIO == "streaming":
        streamed = Runner.run_streamed(root, lab.QUESTION)
        async for _ in streamed.stream_events():
            pass
        return str(streamed.final_output)
    if lab.SCENARIO == "two_turns":
        first = await Runner.run(root, lab.QUESTION)
        turn = [*first.to_input_list(), {"role": "user", "content": "And in Oslo?"}]
        return str((await Runner.run(root, turn)).final_output)
    return str((await Runner.run(root, lab.QUESTION)).final_output)


try:
    lab.answer(asyncio.run(main()))
finally:
    provider.shutdown()

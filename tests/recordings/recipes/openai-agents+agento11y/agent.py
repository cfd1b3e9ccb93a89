"""OpenAI's Agents SDK under Grafana's Agent Observability: its hooks of a run."""

import asyncio

import lab
from agento11y import Client, ClientConfig
from agento11y_openai_agents import with_agento11y_openai_agents_hooks

provider = lab.export()
client = Client(ClientConfig(tracer_provider=provider, use_experimental_otel=True))

from agents import (  # noqa: E402
    Agent,
    Runner,
    function_tool,
    set_default_openai_api,
)

set_default_openai_api("chat_completions")
TOOLS = [function_tool(tool) for tool in lab.TOOLS]


def hooks() -> dict:
    return with_agento11y_openai_agents_hooks(None, client=client, provider_resolver="auto")


def agent(name: str, instructions: str, tools: list, **more: object) -> Agent:
    return Agent(name=name, instructions=instructions, tools=tools, model=lab.MODEL, **more)


def as_tool(name: str, instructions: str):
    one = agent(name, instructions, TOOLS)

    async def run(query: str) -> str:
        with lab.logged(name, {"query": query}, kind="agent_as_tool"):
            return str((await Runner.run(one, query, **hooks())).final_output)

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
        streamed = Runner.run_streamed(root, lab.QUESTION, **hooks())
        async for _ in streamed.stream_events():
            pass
        return str(streamed.final_output)
    if lab.SCENARIO == "two_turns":
        first = await Runner.run(root, lab.QUESTION, **hooks())
        turn = [*first.to_input_list(), {"role": "user", "content": "And in Oslo?"}]
        return str((await Runner.run(root, turn, **hooks())).final_output)
    return str((await Runner.run(root, lab.QUESTION, **hooks())).final_output)


try:
    lab.answer(asyncio.run(main()))
finally:
    client.shutdown()
    provider.shutdown()

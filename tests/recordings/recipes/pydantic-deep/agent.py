"""A deep agent of pydantic-deep, whose sub-agent is a call of the tool `task`, in Pydantic AI's own spans."""

import asyncio

import lab
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_deep import DeepAgentDeps, create_deep_agent

provider = lab.export()
Agent.instrument_all()
MODEL = OpenAIChatModel(lab.MODEL, provider=OpenAIProvider(base_url=lab.URL, api_key="scripted"))
LESS = {f"include_{part}": False for part in ("todo", "filesystem", "skills", "plan", "memory", "history_archive")}
RESEARCHER = {
    "name": "researcher",
    "description": "Finds things out.",
    "instructions": lab.RESEARCHER_SYSTEM,
    "model": MODEL,
    "agent_kwargs": {"tools": lab.TOOLS},
}
agent = create_deep_agent(
    model=MODEL,
    name="assistant",
    instructions=lab.SYSTEM,
    tools=lab.TOOLS,
    subagents=[RESEARCHER],
    include_builtin_subagents=False,
    web_search=False,
    web_fetch=False,
    thinking=False,
    context_manager=False,
    **LESS,
)


async def main() -> str:
    if lab.SCENARIO == "streaming":
        async with agent.run_stream(lab.QUESTION, deps=DeepAgentDeps()) as stream:
            return await stream.get_output()
    return (await agent.run(lab.QUESTION, deps=DeepAgentDeps())).output


try:
    lab.answer(asyncio.run(main()))
finally:
    provider.shutdown()

"""LiveKit's agents in a session of text, whose spans it writes itself."""

import asyncio
import functools
from collections.abc import Callable

import lab
from livekit.agents import Agent, AgentSession, function_tool
from livekit.agents.telemetry import set_tracer_provider
from livekit.plugins import openai

provider = lab.export()
set_tracer_provider(provider)


def as_tool(function: Callable[..., str]) -> Callable:
    @functools.wraps(function)
    async def run(*positional: object, **named: object) -> str:
        return function(*positional, **named)

    return function_tool(run)


TOOLS = list(map(as_tool, lab.TOOLS))


class Researcher(Agent):
    def __init__(self) -> None:
        super().__init__(instructions=lab.RESEARCHER_SYSTEM, id="researcher", tools=TOOLS)

    async def on_enter(self) -> None:
        self.session.generate_reply()


class Assistant(Agent):
    def __init__(self) -> None:
        super().__init__(instructions=lab.SYSTEM, id="assistant", tools=[] if lab.SCENARIO == "handoff" else TOOLS)

    if lab.SCENARIO == "handoff":

        @function_tool
        async def transfer_to_researcher(self) -> Agent:
            """Hand over to the researcher."""
            with lab.logged("transfer_to_researcher", {}, kind="handoff"):
                return Researcher()


async def run() -> None:
    async with AgentSession(llm=openai.LLM(model=lab.MODEL, base_url=lab.URL, api_key="scripted")) as session:
        await session.start(Assistant())
        for _ in range(2 if lab.SCENARIO == "two_turns" else 1):
            result = await session.run(user_input=lab.QUESTION)
        messages = [event.item for event in result.events if event.type == "message"]
        lab.answer(messages[-1].text_content)


try:
    asyncio.run(run())
finally:
    provider.shutdown()

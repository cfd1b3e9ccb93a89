"""OpenAI's Agents SDK through OpenInference: tools that a person approves or rejects, in a run that goes on afterwards."""

import asyncio

import lab
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

OpenAIAgentsInstrumentor().instrument(tracer_provider=lab.export())

from agents import Agent, Runner, function_tool, set_default_openai_api  # noqa: E402

set_default_openai_api("chat_completions")
TOOLS = [function_tool(needs_approval=True)(tool) for tool in lab.TOOLS]


async def main() -> str:
    agent = Agent(name="assistant", instructions=lab.SYSTEM, tools=TOOLS, model=lab.MODEL)
    result = await Runner.run(agent, lab.QUESTION)
    while result.interruptions:
        state = result.to_state()
        for asked in result.interruptions:
            if lab.SCENARIO == "one_rejected" and asked.name == "get_population":
                state.reject(asked)
            else:
                state.approve(asked)
        result = await Runner.run(agent, state)
    return str(result.final_output)


lab.answer(asyncio.run(main()))

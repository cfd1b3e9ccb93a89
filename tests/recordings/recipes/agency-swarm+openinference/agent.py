"""Agency Swarm under OpenInference's instrumentation of OpenAI's Agents SDK: agents that send each other messages, or hand over."""

import asyncio
import json

import lab

provider = lab.export()

from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor  # noqa: E402

OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)

from agency_swarm import Agency, Agent, function_tool  # noqa: E402
from agency_swarm.tools.send_message import Handoff, SendMessage  # noqa: E402
from agents import set_default_openai_api  # noqa: E402

set_default_openai_api("chat_completions")
TOOLS = [function_tool(tool) for tool in lab.TOOLS]


class Logged(SendMessage):
    """Send a message to another agent."""

    async def on_invoke_tool(self, wrapper, arguments_json_string: str):
        with lab.logged(self.name, json.loads(arguments_json_string), kind="agent_as_tool"):
            return await super().on_invoke_tool(wrapper, arguments_json_string)


def agent(name: str, instructions: str, tools: list) -> Agent:
    return Agent(name=name, description=f"The {name}", instructions=instructions, tools=tools, model=lab.MODEL)


async def main() -> str:
    several = lab.SCENARIO in ("delegation", "handoff")
    assistant = agent("assistant", lab.SYSTEM, [] if several else TOOLS)
    flows = []
    if several:
        researcher = agent("researcher", lab.RESEARCHER_SYSTEM, TOOLS)
        flows = [(assistant > researcher, Handoff if lab.SCENARIO == "handoff" else Logged)]
    agency = Agency(assistant, communication_flows=flows)
    if lab.SCENARIO == "streaming":
        streamed = agency.get_response_stream(lab.QUESTION)
        async for _ in streamed:
            pass
        return str(streamed.final_result.final_output)
    said = ""
    for question in [lab.QUESTION, "And in Oslo?"][: 2 if lab.SCENARIO == "two_turns" else 1]:
        said = str((await agency.get_response(question)).final_output)
    return said


try:
    lab.answer(asyncio.run(main()))
finally:
    provider.shutdown()

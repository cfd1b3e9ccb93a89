"""AutoGen AgentChat: its own spans, and OpenLLMetry's of the model calls."""

import asyncio

import lab
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from opentelemetry.instrumentation.openai import OpenAIInstrumentor

provider = lab.export()
OpenAIInstrumentor().instrument(tracer_provider=provider)
TOOLS = [FunctionTool(tool, description=tool.__doc__.split("\n")[0]) for tool in lab.TOOLS]
CLIENT = OpenAIChatCompletionClient(
    model=lab.MODEL, base_url=lab.URL, api_key="scripted", include_name_in_message=False
)


async def researcher(query: str) -> str:
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        agent = AssistantAgent(
            "researcher", CLIENT, tools=TOOLS, system_message=lab.RESEARCHER_SYSTEM, max_tool_iterations=4
        )
        return (await agent.run(task=query)).messages[-1].content


async def main() -> None:
    stream = lab.SCENARIO == "streaming"
    if lab.SCENARIO == "handoff":
        first = AssistantAgent("assistant", CLIENT, handoffs=["researcher"], system_message=lab.SYSTEM)
        second = AssistantAgent(
            "researcher", CLIENT, tools=TOOLS, system_message=lab.RESEARCHER_SYSTEM, max_tool_iterations=4
        )
        team = Swarm(
            [first, second], termination_condition=TextMentionTermination("21 degrees.", sources=["researcher"])
        )
        result = await team.run(task=lab.QUESTION)
    else:
        ask = FunctionTool(researcher, description="Ask the researcher.")
        tools = [ask] if lab.SCENARIO == "delegation" else TOOLS
        agent = AssistantAgent(
            "assistant",
            CLIENT,
            tools=tools,
            system_message=lab.SYSTEM,
            max_tool_iterations=6,
            model_client_stream=stream,
        )
        result = await agent.run(task=lab.QUESTION)
    lab.answer(result.messages[-1].content)


asyncio.run(main())
provider.shutdown()

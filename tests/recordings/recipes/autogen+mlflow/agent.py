"""AutoGen AgentChat under MLflow's autolog, which exports to the endpoint of the environment."""

import asyncio
import os

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
import lab
import mlflow
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.autogen.autolog()
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


try:
    asyncio.run(main())
finally:
    mlflow.flush_trace_async_logging()

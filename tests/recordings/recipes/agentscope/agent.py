"""AgentScope with its own tracing middleware."""

import asyncio
import os

import lab
from agentscope.agent import Agent
from agentscope.credential import AnthropicCredential, OpenAICredential
from agentscope.message import UserMsg
from agentscope.middleware import TracingMiddleware
from agentscope.model import AnthropicChatModel, OpenAIChatModel
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import FunctionTool, Toolkit

provider = lab.export()
ALLOWED = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="")


def agent(name: str, system: str, functions: list) -> Agent:
    if lab.SCENARIO == "anthropic_cached_write":
        credential = AnthropicCredential(api_key="scripted", base_url=os.environ["ANTHROPIC_BASE_URL"])
        model = AnthropicChatModel(credential, "claude-sonnet-4-5", stream=False)
    else:
        credential = OpenAICredential(api_key="scripted", base_url=lab.URL)
        model = OpenAIChatModel(credential, lab.MODEL, stream=lab.SCENARIO == "streaming", retry_delay=0.1)
    toolkit = Toolkit([FunctionTool(function, permission=ALLOWED) for function in functions])
    return Agent(name, system, model, toolkit, [TracingMiddleware()])


async def researcher(query: str) -> str:
    """Ask the researcher.

    Args:
        query: what to find out
    """
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        said = await agent("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS).reply(UserMsg("assistant", query))
        return said.get_text_content()


async def main() -> None:
    functions = [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS
    said = await agent("assistant", lab.SYSTEM, functions).reply(UserMsg("user", lab.QUESTION))
    lab.answer(said.get_text_content())


asyncio.run(main())
provider.shutdown()

"""Pydantic AI's agent with the tools of a FastMCP server: a tool call in the spans of the framework, of FastMCP's client and its server, and of MCP's SDK."""

import asyncio

import lab
from fastmcp import FastMCP
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = lab.export()
Agent.instrument_all()
MODEL = OpenAIChatModel(lab.MODEL, provider=OpenAIProvider(base_url=lab.URL, api_key="scripted"))


def served(name: str, tools: list) -> MCPToolset:
    server = FastMCP(name)
    for one in tools:
        server.tool(one)
    return MCPToolset(server)


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        helper = Agent(
            MODEL, name="researcher", system_prompt=lab.RESEARCHER_SYSTEM, toolsets=[served("weather", lab.TOOLS)]
        )
        return (await helper.run(query)).output


async def main() -> str:
    tools = served("people", [researcher]) if lab.SCENARIO == "delegation" else served("weather", lab.TOOLS)
    agent = Agent(MODEL, name="assistant", system_prompt=lab.SYSTEM, toolsets=[tools])
    return (await agent.run(lab.QUESTION)).output


try:
    lab.answer(asyncio.run(main()))
finally:
    provider.shutdown()

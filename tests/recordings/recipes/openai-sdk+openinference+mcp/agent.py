"""A loop of OpenAI calls whose tools are another process behind MCP: OpenInference of the SDK, and the spans of MCP's own SDK."""

import asyncio
import json
import os
import sys

import lab
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server.mcpserver import MCPServer
from openinference.instrumentation.openai import OpenAIInstrumentor

provider = lab.export()


def serve() -> None:
    server = MCPServer("weather")
    for one in lab.TOOLS:
        server.tool()(one)
    server.run()


async def main() -> str:
    from openai import OpenAI

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    client = OpenAI(max_retries=0)
    command = StdioServerParameters(
        command=sys.executable, args=[__file__, lab.SCENARIO, "serve"], env=dict(os.environ)
    )
    messages = [{"role": "system", "content": lab.SYSTEM}, {"role": "user", "content": lab.QUESTION}]
    async with Client(stdio_client(command)) as server:
        offered = [
            {
                "type": "function",
                "function": {"name": one.name, "description": one.description, "parameters": one.input_schema},
            }
            for one in (await server.list_tools()).tools
        ]
        while True:
            message = lab.ask(client, messages, offered)
            messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                function = call["function"]
                try:
                    done = await server.call_tool(function["name"], json.loads(function["arguments"]))
                    result = "".join(part.text for part in done.content)
                except Exception as error:
                    result = f"error: {error}"
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


if len(sys.argv) > 2:
    serve()
else:
    try:
        lab.answer(asyncio.run(main()))
    finally:
        provider.shutdown()

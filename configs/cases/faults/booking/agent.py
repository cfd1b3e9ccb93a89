"""A pydantic-ai agent whose tools are those of an MCP server: the command line that is given.

Nothing here knows clawtrace. The exporter reads the standard ``OTEL_*`` variables, the model's address and key are
OpenAI's own variables, the question stands on standard input.
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent, ModelRetry, Tool
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel


def of_server(client: Client, name: str, description: str, schema: dict) -> Tool:
    """Return a tool of the MCP server; when it fails, the model may try it again."""

    async def call(**arguments: object) -> str:
        found = await client.call_tool(name, arguments)
        text = "\n".join(part.text for part in found.content)
        if found.is_error:
            raise ModelRetry(text)
        return text or "nothing found"

    return Tool.from_schema(call, name, description, schema)


async def answer(question: str, command: list[str]) -> str:
    """Answer a question with the tools of the server that `command` starts."""
    async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
        found = (await client.list_tools()).tools
        tools = [of_server(client, tool.name, tool.description or "", tool.input_schema) for tool in found]
        agent = Agent(OpenAIChatModel("gpt-4o"), name="travel", tools=tools, retries=3)
        return (await agent.run(question)).output


def main() -> None:
    """Answer the question on standard input."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    sys.stdout.write(asyncio.run(answer(sys.stdin.read(), sys.argv[1:])) + "\n")
    provider.shutdown()


if __name__ == "__main__":
    main()

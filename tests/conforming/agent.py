"""An agent of Pydantic AI with two tools; it streams in the scenario `streaming`, and hands over in `delegation`."""

import asyncio
import json
import os
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel

SCENARIO = os.environ["CLAWTRACE_SCENARIO"]
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
agent = Agent(OpenAIChatModel("gpt-4o"), name="assistant", retries=2)
researcher = Agent(OpenAIChatModel("gpt-4o"), name="researcher")


def tell(**one):
    """Say what truly happened, where another agent takes part."""
    if SCENARIO == "delegation":
        with Path(os.environ["CLAWTRACE_TRUTH"]).open("a") as file:
            file.write(json.dumps(one) + "\n")


def get_weather(city: str) -> str:
    tell(tool="get_weather", arguments={"city": city}, error=False)
    return f"21 degrees in {city}"


def to_fahrenheit(celsius: float) -> float:
    return celsius * 9 / 5 + 32


async def ask_researcher(question: str) -> str:
    tell(agent="researcher", parent="assistant")
    answer = (await researcher.run(question)).output
    tell(tool="ask_researcher", arguments={"question": question}, error=False)
    return answer


agent.tool_plain(get_weather)
agent.tool_plain(to_fahrenheit)
agent.tool_plain(ask_researcher)
researcher.tool_plain(get_weather)
tell(agent="assistant")


async def answer():
    if SCENARIO != "streaming":
        return (await agent.run("What is the weather?")).output
    async with agent.run_stream("What is the weather?") as result:
        return await result.get_output()


try:
    print(asyncio.run(answer()))
finally:
    provider.shutdown()

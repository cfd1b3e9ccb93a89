"""VeADK's agent, which changes the spans of Google's ADK."""

import asyncio

import lab
from veadk import Agent, Runner
from veadk.tracing.telemetry.opentelemetry_tracer import OpentelemetryTracer

provider = lab.export()
tracer = OpentelemetryTracer()
common = {"model_name": lab.MODEL, "model_provider": "openai", "model_api_base": lab.URL, "model_api_key": "scripted"}


def agent(name: str, system: str, tools: list, **more) -> Agent:
    return Agent(name=name, description=name, instruction=system, tools=tools, tracers=[tracer], **common, **more)


if lab.SCENARIO == "transfer":
    root = agent("assistant", lab.SYSTEM, [], sub_agents=[agent("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS)])
else:
    root = agent("assistant", lab.SYSTEM, lab.TOOLS)


async def main() -> None:
    lab.answer(await Runner(agent=root, app_name="lab", user_id="user").run(messages=lab.QUESTION, session_id="1"))


try:
    asyncio.run(main())
finally:
    provider.shutdown()

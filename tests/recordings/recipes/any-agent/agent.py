"""any-agent's TinyAgent, whose spans it writes itself."""

import asyncio

import lab
from any_agent import AgentConfig, AnyAgent
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))


async def run(name: str, instructions: str, tools: list, question: str) -> str:
    config = AgentConfig(
        name=name,
        model_id=f"openai:{lab.MODEL}",
        api_base=lab.URL,
        api_key="scripted",
        instructions=instructions,
        tools=tools,
        model_args={"stream": False},
    )
    agent = await AnyAgent.create_async("tinyagent", config)
    return str((await agent.run_async(question)).final_output)


async def researcher(query: str) -> str:
    """Ask the researcher.

    Args:
        query: what to find out
    """
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return await run("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS, query)


tools = [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS
lab.answer(asyncio.run(run("assistant", lab.SYSTEM, tools, lab.QUESTION)))

"""OpenAI Agents SDK under the processor of Weave that writes OpenTelemetry spans; it needs no account, as `weave.init` does."""

import asyncio

import lab
from agents import Agent, Runner, add_trace_processor, function_tool, set_trace_processors
from weave.integrations.openai_agents.otel_processor import WeaveOtelTracingProcessor

set_trace_processors([])
provider = lab.export()
add_trace_processor(WeaveOtelTracingProcessor())
TOOLS = [function_tool(tool) for tool in lab.TOOLS]


def agents() -> Agent:
    if "handoff" in lab.SCENARIO:
        researcher = Agent(name="researcher", instructions=lab.RESEARCHER_SYSTEM, model=lab.MODEL, tools=TOOLS)
        return Agent(name="assistant", instructions=lab.SYSTEM, model=lab.MODEL, handoffs=[researcher])
    if "delegation" in lab.SCENARIO:
        researcher = Agent(name="researcher", instructions=lab.RESEARCHER_SYSTEM, model=lab.MODEL, tools=TOOLS)

        @function_tool(name_override="researcher")
        async def ask(query: str) -> str:
            """Ask the researcher."""
            with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
                return (await Runner.run(researcher, query)).final_output

        return Agent(name="assistant", instructions=lab.SYSTEM, model=lab.MODEL, tools=[ask])
    return Agent(name="assistant", instructions=lab.SYSTEM, model=lab.MODEL, tools=TOOLS)


async def main() -> None:
    if lab.SCENARIO == "streaming":
        result = Runner.run_streamed(agents(), lab.QUESTION)
        async for _ in result.stream_events():
            pass
    else:
        result = await Runner.run(agents(), lab.QUESTION)
    lab.answer(result.final_output)


asyncio.run(main())
provider.shutdown()

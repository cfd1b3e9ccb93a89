"""OpenAI Agents under AgentOps, whose exporter sends to the endpoint of the environment."""

import os

import lab
from agentops import instrumentation
from agentops.sdk.core import tracer

tracer.initialize(
    exporter_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces",
    metrics_endpoint=os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/metrics",
)
instrumentation.instrument_all()
from agents import Agent, Runner, function_tool, set_default_openai_api  # noqa: E402

set_default_openai_api("chat_completions")
TOOLS = [function_tool(tool) for tool in lab.TOOLS]


def main() -> str:
    helper = Agent(name="researcher", instructions=lab.RESEARCHER_SYSTEM, tools=TOOLS, model=lab.MODEL)
    if lab.SCENARIO == "delegation":

        @function_tool
        async def researcher(query: str) -> str:
            """Ask the researcher."""
            with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
                return (await Runner.run(helper, query)).final_output

        tools, handoffs = [researcher], []
    else:
        tools, handoffs = TOOLS, [helper] if lab.SCENARIO == "handoff" else []
    agent = Agent(name="assistant", instructions=lab.SYSTEM, tools=tools, handoffs=handoffs, model=lab.MODEL)
    return Runner.run_sync(agent, lab.QUESTION).final_output


try:
    trace = tracer.start_trace(trace_name="session")
    try:
        lab.answer(main())
    finally:
        tracer.end_trace(trace)
finally:
    tracer.shutdown()

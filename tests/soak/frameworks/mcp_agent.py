# /// script
# dependencies = [
#     "mcp-agent==0.2.6",
#     "mcp==1.30.0",
#     "openai==3.54.0",
#     "opentelemetry-instrumentation-openai==0.62.4",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["native"]
# patterns = ["given-up"]
# ///
"""An agent of mcp-agent, whose tools are those of an MCP server."""

from __future__ import annotations

import os
import sys
from typing import Any

from agent_program import LOG, MAX_STEPS, MODEL, Job, NamesRun, begin, main, system, tools_as, within_time

SERVER = "weather"


def run(job: Job) -> str | None:
    return within_time(_run(job), job)


async def _run(job: Job) -> str | None:
    from mcp_agent.agents.agent import Agent
    from mcp_agent.app import MCPApp
    from mcp_agent.config import (
        LoggerSettings,
        MCPServerSettings,
        MCPSettings,
        OpenAISettings,
        OpenTelemetrySettings,
        Settings,
    )
    from mcp_agent.workflows.llm.augmented_llm import RequestParams
    from mcp_agent.workflows.llm.augmented_llm_openai import OpenAIAugmentedLLM

    server = MCPServerSettings(
        command=sys.executable,
        args=[__file__, "serve", job.run, str(LOG)],
        env={name: value for name, value in os.environ.items() if name.startswith(("PYTHONPATH", "CLAWTRACE"))},
    )
    exporter: Any = {"otlp": {"endpoint": os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"}}
    settings = Settings(
        execution_engine="asyncio",
        logger=LoggerSettings(type="none"),
        mcp=MCPSettings(servers={SERVER: server}),
        openai=OpenAISettings(api_key="none", base_url=job.url, default_model=MODEL),
        otel=OpenTelemetrySettings(enabled=True, service_name="soak", exporters=[exporter]),
    )
    output = None
    async with MCPApp(name="soak", settings=settings).run() as app:
        agent = Agent(name="assistant", instruction=system("assistant"), server_names=[SERVER], context=app.context)
        async with agent:
            model = await agent.attach_llm(OpenAIAugmentedLLM)
            for turn in job.turns:
                params = RequestParams(model=MODEL, max_iterations=MAX_STEPS, parallel_tool_calls=job.count_stream)
                output = await model.generate_str(turn, request_params=params)
    return output


def _native(_: Any) -> None:
    from mcp_agent.tracing.tracer import TracingConfig

    configure = TracingConfig.configure

    async def named(self: Any, *values: Any, **given: Any) -> None:
        await configure(self, *values, **given)
        processors = self._tracer_provider._active_span_processor
        processors._span_processors = (NamesRun(), *processors._span_processors)

    TracingConfig.configure = named


def serve(run: str) -> None:
    from mcp.server.fastmcp import FastMCP

    begin(run)
    server = FastMCP(SERVER)
    for name, tool in tools_as(f"{SERVER}_").items():
        server.add_tool(tool, name)
    server.run()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        main(run, {"native": _native})

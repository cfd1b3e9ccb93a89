# /// script
# dependencies = [
#     "llama-index-core==0.14.25",
#     "llama-index-llms-openai==0.8.3",
#     "llama-index-workflows==2.26.1",
#     "openinference-instrumentation-llama-index==4.6.1",
#     "opentelemetry-instrumentation-llamaindex==0.62.4",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["openinference", "openllmetry"]
# helpers = ["handoff"]
# patterns = ["given-up", "read-in-part", "chain", "parallel"]
# pseudo-tools = ["handoff"]
# [tool.soak.environments]
# otel = [
#     "llama-index-core==0.14.25", "llama-index-llms-openai==0.8.3", "llama-index-workflows==2.26.1",
#     "llama-index-observability-otel==0.7.0", "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# ///
"""A workflow of LlamaIndex's agents; one may hand over to another."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, main, read_in_part, system, within_time
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from llama_index.llms.openai import OpenAI


def run(job: Job) -> str | None:
    return within_time(_run(job), job)


async def _run(job: Job) -> str | None:
    def agent(name: str, tools: list[Any], to: list[str], works: str = "") -> FunctionAgent:
        model = OpenAI(model=MODEL, api_base=job.url, api_key="none")
        return FunctionAgent(
            name=name,
            description=name,
            system_prompt=system(name, works),
            tools=tools,
            llm=model,
            streaming=job.stream,
            can_handoff_to=to,
        )

    tools = [FunctionTool.from_defaults(fn=tool) for tool in TOOLS.values()]
    helpers = ["researcher"] if job.helper == "handoff" else []
    agents = [agent("assistant", tools, helpers), *(agent(name, tools[:2], []) for name in helpers)]
    if job.helper in ("chain", "parallel"):
        writer = agent("writer", tools, [], "alone" if job.helper == "chain" else "beside assistant")
        asked: list[Any] = [one.run(job.turns[0], max_iterations=4 * MAX_STEPS) for one in agents]
        if job.helper == "chain":
            await asked[0]
        asked.append(writer.run(job.turns[0], max_iterations=4 * MAX_STEPS))
        return (await asyncio.gather(*asked))[-1].response.content
    workflow = AgentWorkflow(agents=agents, root_agent="assistant")
    context, output = Context(workflow), None
    for turn in job.turns:
        if job.helper == "read-in-part":
            handler = workflow.run(turn, ctx=context, max_iterations=4 * MAX_STEPS)
            try:
                await read_in_part(handler.stream_events(), job)
            finally:
                await handler.cancel_run()
        output = (await workflow.run(turn, ctx=context, max_iterations=4 * MAX_STEPS)).response.content
    return output


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)


def _openllmetry(provider: Any) -> None:
    from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)


def _otel(provider: Any) -> None:
    from llama_index.observability.otel import LlamaIndexOpenTelemetry
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    LlamaIndexOpenTelemetry(tracer_provider=provider, span_exporter=OTLPSpanExporter()).start_registering()


if __name__ == "__main__":
    main(run, {"openinference": _openinference, "openllmetry": _openllmetry, "otel": _otel}, together=3)

# /// script
# dependencies = [
#     "haystack-ai==3.4.1",
#     "opentelemetry-haystack==2.0.0",
#     "openinference-instrumentation-haystack==0.1.46",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["native", "openinference", "native,openinference"]
# helpers = ["tool"]
# ///
"""Agents of Haystack in a pipeline, which names the outer one."""

from __future__ import annotations

import os
from typing import Any

os.environ |= {
    "HAYSTACK_CONTENT_TRACING_ENABLED": "true",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "OPENAI_API_KEY": "none",
}

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, logged, main, schema, system
from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool


def run(job: Job) -> str | None:
    def agent(name: str, tools: list[Tool]) -> Agent:
        streamed: Any = {}
        if job.stream:
            options = {"stream_options": {"include_usage": True}} if job.count_stream else {}
            streamed = {"streaming_callback": lambda _: None, "generation_kwargs": options}
        generator = OpenAIChatGenerator(model=MODEL, api_base_url=job.url, **streamed)
        return Agent(chat_generator=generator, tools=tools, system_prompt=system(name), max_agent_steps=MAX_STEPS)

    tools = [Tool(name, tool.__doc__ or "", schema(tool), tool) for name, tool in TOOLS.items()]
    if job.helper == "tool":
        researcher = agent("researcher", tools[:2])

        def ask_researcher(question: str) -> str:
            """Ask the researcher."""
            return researcher.run([ChatMessage.from_user(question)])["messages"][-1].text or ""

        ask = logged(ask_researcher)
        accepted = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
        tools.append(Tool("ask_researcher", "Ask the researcher.", accepted, ask))
    pipeline = Pipeline()
    pipeline.add_component("assistant", agent("assistant", tools))
    messages: list[ChatMessage] = []
    for turn in job.turns:
        messages.append(ChatMessage.from_user(turn))
        messages = pipeline.run({"assistant": {"messages": messages}})["assistant"]["messages"]
        messages = [message for message in messages if not message.is_from("system")]
    return messages[-1].text


def _native(_: Any) -> None:
    from haystack import tracing
    from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer
    from opentelemetry import trace

    tracing.tracer.is_content_tracing_enabled = True
    tracing.enable_tracing(OpenTelemetryTracer(trace.get_tracer("haystack")))


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.haystack import HaystackInstrumentor

    HaystackInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(run, {"native": _native, "openinference": _openinference}, together=2)

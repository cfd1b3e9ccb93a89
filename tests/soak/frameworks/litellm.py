# /// script
# dependencies = [
#     "litellm==1.110.2",
#     "openinference-instrumentation-litellm==0.1.51",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["native", "openinference"]
# named-agents = false
# counts-itself = ["native", "openinference"]
# ends-broken-streams = true
# ///
"""A loop around LiteLLM's `completion`: the program executes the tools itself."""

from __future__ import annotations

from typing import Any

import litellm
from agent_program import MAX_STEPS, MODEL, TOOLS, Job, execute, main, offered, system
from opentelemetry import trace


def run(job: Job) -> str | None:
    messages: list[Any] = [{"role": "system", "content": system("assistant")}]
    text = None
    for turn in job.turns:
        messages.append({"role": "user", "content": turn})
        with trace.get_tracer("lab.app").start_as_current_span("app.handle_request") as span:
            text = _answer(messages, job, span)
    return text


def _answer(messages: list[Any], job: Job, span: trace.Span) -> str | None:
    for _ in range(MAX_STEPS):
        message = _ask(messages, job, span)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            result = execute(call["function"]["name"], call["function"]["arguments"], TOOLS)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    raise RuntimeError("too many steps")


def _ask(messages: list[Any], job: Job, span: trace.Span) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "model": f"openai/{MODEL}", "api_base": job.url, "api_key": "none", "messages": [*messages], "tools": offered(TOOLS),
        # It writes the spans of streams in threads that know nothing of the program's context.
        "metadata": {"litellm_parent_otel_span": span},
    }  # fmt: skip
    if not job.stream:
        return litellm.completion(**asked).choices[0].message.model_dump(include={"role", "content", "tool_calls"})
    options = {"stream_options": {"include_usage": True}} if job.count_stream else {}
    chunks = list(litellm.completion(**asked, stream=True, **options))
    whole = litellm.stream_chunk_builder(chunks)
    return whole.choices[0].message.model_dump(include={"role", "content", "tool_calls"})


def _native(provider: Any) -> None:
    from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig
    from litellm.litellm_core_utils.thread_pool_executor import executor

    def shutdown() -> None:
        executor.shutdown()  # it writes the last spans
        end()

    end, provider.shutdown = provider.shutdown, shutdown
    litellm.callbacks = [OpenTelemetry(config=OpenTelemetryConfig(exporter="none"), tracer_provider=provider)]


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.litellm import LiteLLMInstrumentor

    LiteLLMInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(run, {"native": _native, "openinference": _openinference})

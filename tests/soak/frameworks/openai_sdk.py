# /// script
# dependencies = [
#     "openai==3.54.0",
#     "opentelemetry-instrumentation-openai==0.62.4",
#     "openinference-instrumentation-openai==0.1.66",
#     "opentelemetry-instrumentation-genai-openai==1.3b0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["genai", "openinference", "openllmetry", "genai,openinference", "openinference,openllmetry"]
# named-agents = false
# [tool.soak.environments]
# official = [
#     "openai==3.54.0", "opentelemetry-instrumentation-openai-v2==2.4b0", "opentelemetry-util-genai==1.1b0", "httpx==0.28.1",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# "official,openinference" = [
#     "openai==3.54.0", "opentelemetry-instrumentation-openai-v2==2.4b0", "opentelemetry-util-genai==1.1b0", "httpx==0.28.1",
#     "openinference-instrumentation-openai==0.1.66", "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# ///
"""A loop around Chat Completions of the OpenAI SDK: the program executes the tools itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, fits, main, offered, system
from openai import OpenAI
from opentelemetry import trace

Tools = Mapping[str, Callable[..., Any]]


def run(job: Job) -> str | None:
    client = OpenAI(base_url=job.url, api_key="none")
    messages: list[Any] = [{"role": "system", "content": system("assistant")}]
    text = None
    for turn in job.turns:
        with _span("app.handle_request"):
            text = answer(client, messages, turn, TOOLS, job)
    return text


def _span(name: str, **attributes: str) -> Any:
    """Return a span of the program's own, next to the official instrumentation: it knows nothing but model calls."""
    own = "official" in sys.argv[1]
    return trace.get_tracer("lab.app").start_as_current_span(name, attributes=attributes) if own else nullcontext()


def answer(client: Any, messages: list[Any], question: str, tools: Tools, job: Job) -> str | None:
    """Return the answer to a question; the messages until then become longer."""
    messages.append({"role": "user", "content": question})
    for _ in range(MAX_STEPS):
        message = _streamed(client, messages, tools, job) if job.stream else _whole(client, messages, tools)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            result = execute(call["function"]["name"], call["function"]["arguments"], tools)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    raise RuntimeError("too many steps")


def execute(name: str, arguments: str, tools: Tools) -> str:
    """Return what the model gets of a call."""
    try:
        given = json.loads(arguments)
        if not fits(tools[name], given):
            return "Error: the arguments do not fit"
        named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        with _span(f"execute_tool {name}", **named) if "openinference" in sys.argv[1] else nullcontext():
            return str(tools[name](**given))
    except KeyError:
        return f"Error: there is no tool {name}"
    except ValueError as error:
        return f"Error: {error}"


def _whole(client: Any, messages: list[Any], tools: Tools) -> dict[str, Any]:
    said = client.chat.completions.create(model=MODEL, messages=messages, tools=offered(tools))
    return said.choices[0].message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=False)


def _streamed(client: Any, messages: list[Any], tools: Tools, job: Job) -> dict[str, Any]:
    asked: Any = {"model": MODEL, "messages": messages, "tools": offered(tools), "stream": True}
    if job.count_stream:
        asked["stream_options"] = {"include_usage": True}
    text, calls = "", {}
    for chunk in client.chat.completions.create(**asked):
        for delta in [choice.delta for choice in chunk.choices]:
            text += delta.content or ""
            for part in delta.tool_calls or ():
                call = calls.setdefault(
                    part.index, {"id": part.id, "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    return {**message, "tool_calls": list(calls.values())} if calls else message


def _genai(provider: Any) -> None:
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)


def _openllmetry(provider: Any) -> None:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)


def _official(provider: Any) -> None:
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)


INSTRUMENT = {"genai": _genai, "openinference": _openinference, "openllmetry": _openllmetry, "official": _official}

if __name__ == "__main__":
    main(run, INSTRUMENT, together=3)

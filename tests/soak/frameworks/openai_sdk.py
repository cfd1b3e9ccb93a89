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
# ///
"""A loop around Chat Completions of the OpenAI SDK: the program executes the tools itself."""

from __future__ import annotations

import json
from typing import Any

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, fits, main, schema, system
from openai import OpenAI

OFFERED: Any = [
    {"type": "function", "function": {"name": name, "description": tool.__doc__, "parameters": schema(tool)}}
    for name, tool in TOOLS.items()
]


def run(job: Job) -> str | None:
    client = OpenAI(base_url=job.url, api_key="none")
    messages: list[Any] = [{"role": "system", "content": system("assistant")}]
    text = None
    for turn in job.turns:
        messages.append({"role": "user", "content": turn})
        for _ in range(MAX_STEPS):
            message = _streamed(client, messages, job) if job.stream else _whole(client, messages)
            messages.append(message)
            text = message["content"]
            if not message.get("tool_calls"):
                break
            for call in message["tool_calls"]:
                result = execute(call["function"]["name"], call["function"]["arguments"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        else:
            raise RuntimeError("too many steps")
    return text


def execute(name: str, arguments: str) -> str:
    """Return what the model gets of a call."""
    try:
        given = json.loads(arguments)
        if not fits(TOOLS[name], given):
            return "Error: the arguments do not fit"
        return TOOLS[name](**given)
    except KeyError:
        return f"Error: there is no tool {name}"
    except ValueError as error:
        return f"Error: {error}"


def _whole(client: OpenAI, messages: list[Any]) -> dict[str, Any]:
    answer = client.chat.completions.create(model=MODEL, messages=messages, tools=OFFERED)
    return answer.choices[0].message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=False)


def _streamed(client: OpenAI, messages: list[Any], job: Job) -> dict[str, Any]:
    more: Any = {"stream_options": {"include_usage": True}} if job.count_stream else {}
    text, calls = "", {}
    for chunk in client.chat.completions.create(model=MODEL, messages=messages, tools=OFFERED, stream=True, **more):
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


if __name__ == "__main__":
    main(run, {"genai": _genai, "openinference": _openinference, "openllmetry": _openllmetry}, together=3)

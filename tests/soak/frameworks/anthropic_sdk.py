# /// script
# dependencies = [
#     "anthropic==2.12.0",
#     "openinference-instrumentation-anthropic==3.1.0",
#     "opentelemetry-instrumentation-anthropic==0.62.4",
#     "opentelemetry-instrumentation-genai-anthropic==1.3b0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["openinference", "openllmetry", "genai", "openinference,openllmetry"]
# named-agents = false
# ///
"""A loop around the messages of Anthropic's SDK: the program executes the tools itself."""

from __future__ import annotations

from typing import Any

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, fits, main, schema, system
from anthropic import Anthropic

OFFERED: Any = [
    {"name": name, "description": tool.__doc__, "input_schema": schema(tool)} for name, tool in TOOLS.items()
]


def run(job: Job) -> str | None:
    client = Anthropic(base_url=job.url.removesuffix("/v1"), api_key="none")
    messages: list[Any] = []
    text = None
    for turn in job.turns:
        messages.append({"role": "user", "content": turn})
        for _ in range(MAX_STEPS):
            asked: Any = {
                "model": MODEL,
                "max_tokens": 999,
                "system": system("assistant"),
                "messages": messages,
                "tools": OFFERED,
            }
            answer = _streamed(client, asked) if job.stream else client.messages.create(**asked)
            text = "".join(block.text for block in answer.content if block.type == "text")
            calls = [block for block in answer.content if block.type == "tool_use"]
            content = [block.model_dump(exclude_none=True) for block in answer.content]
            messages.append({"role": "assistant", "content": content or "."})
            if not calls:
                break
            messages.append({"role": "user", "content": [_result(call) for call in calls]})
        else:
            raise RuntimeError("too many steps")
    return text


def _streamed(client: Anthropic, asked: Any) -> Any:
    with client.messages.stream(**asked) as stream:
        return stream.get_final_message()


def _result(call: Any) -> dict[str, Any]:
    text, failed = "", True
    if call.name not in TOOLS:
        text = f"Error: there is no tool {call.name}"
    elif not fits(TOOLS[call.name], call.input):
        text = "Error: the arguments do not fit"
    else:
        try:
            text, failed = TOOLS[call.name](**call.input), False
        except ValueError as error:
            text = f"Error: {error}"
    return {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": failed}


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.anthropic import AnthropicInstrumentor

    AnthropicInstrumentor().instrument(tracer_provider=provider)


def _openllmetry(provider: Any) -> None:
    from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

    AnthropicInstrumentor().instrument(tracer_provider=provider)


def _genai(provider: Any) -> None:
    from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor

    AnthropicInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(run, {"genai": _genai, "openinference": _openinference, "openllmetry": _openllmetry}, together=3)

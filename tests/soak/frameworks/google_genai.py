# /// script
# dependencies = [
#     "google-genai==2.34.0",
#     "opentelemetry-instrumentation-google-genai==1.3b0",
#     "openinference-instrumentation-google-genai==1.4.14",
#     "opentelemetry-instrumentation-google-generativeai==0.62.4",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
# ]
# [tool.soak]
# instrumentations = ["official", "openinference", "openllmetry"]
# named-agents = false
# ///
"""A loop around Gemini's `generate_content`: the program executes the tools, or lets the SDK call them (`count_stream`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agent_program import MAX_STEPS, MODEL, TOOLS, Job, execute, main, schema, system
from google import genai
from google.genai import types


def run(job: Job) -> str | None:
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=job.url.removesuffix("/v1")))
    declared = [
        types.FunctionDeclaration(name=name, description=tool.__doc__, parameters_json_schema=schema(tool))
        for name, tool in TOOLS.items()
    ]
    automatic = job.count_stream and not job.stream
    tools: list[Any] = list(TOOLS.values()) if automatic else [types.Tool(function_declarations=declared)]
    config = types.GenerateContentConfig(system_instruction=system("assistant"), tools=tools)
    contents: list[types.Content] = []
    text = None
    for turn in job.turns:
        text = _answer(client, contents, turn, config, job)
    return text


def _answer(
    client: genai.Client, contents: list[types.Content], question: str, config: types.GenerateContentConfig, job: Job
) -> str | None:
    contents.append(types.Content(role="user", parts=[types.Part(text=question)]))
    for _ in range(MAX_STEPS):
        parts = [part for one in _said(client, contents, config, job) for part in one.parts or ()]
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts)
        results = [
            types.FunctionResponse(
                name=call.name, response={"result": execute(call.name or "", call.args or {}, TOOLS)}
            )
            for call in calls
        ]
        contents.append(types.Content(role="user", parts=[types.Part(function_response=one) for one in results]))
    raise RuntimeError("too many steps")


def _said(
    client: genai.Client, contents: list[types.Content], config: types.GenerateContentConfig, job: Job
) -> Iterator[types.Content]:
    """Yield what the model says, in one piece or several."""
    asked: Any = {"model": MODEL, "contents": [*contents], "config": config}
    if job.stream:
        answers = client.models.generate_content_stream(**asked)
    else:
        answers = [client.models.generate_content(**asked)]
    for answer in answers:
        yield from (one.content for one in answer.candidates or () if one.content)


def _official(provider: Any) -> None:
    from opentelemetry.instrumentation.google_genai import GoogleGenAiSdkInstrumentor

    GoogleGenAiSdkInstrumentor().instrument(tracer_provider=provider)


def _openinference(provider: Any) -> None:
    from openinference.instrumentation.google_genai import GoogleGenAIInstrumentor

    GoogleGenAIInstrumentor().instrument(tracer_provider=provider)


def _openllmetry(provider: Any) -> None:
    from opentelemetry.instrumentation.google_generativeai import GoogleGenerativeAiInstrumentor

    GoogleGenerativeAiInstrumentor().instrument(tracer_provider=provider)


if __name__ == "__main__":
    main(run, {"official": _official, "openinference": _openinference, "openllmetry": _openllmetry}, together=3)

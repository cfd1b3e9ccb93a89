"""A plain loop over OpenAI's Responses, with the instrumentation of Azure's client library of AI projects."""

import json

import lab
from azure.core.settings import settings

settings.tracing_implementation = "opentelemetry"
provider = lab.export()
from azure.ai.projects.telemetry import AIProjectInstrumentor  # noqa: E402

AIProjectInstrumentor().instrument(enable_content_recording=True)
from openai import OpenAI  # noqa: E402
from opentelemetry import trace  # noqa: E402

client = OpenAI()
tracer = trace.get_tracer("agent")
TOOLS = {tool.__name__: tool for tool in lab.TOOLS}
OFFERED = [{"type": "function", **lab.schema(tool)["function"]} for tool in lab.TOOLS]


def ask(items: list):
    asked = {"model": lab.MODEL, "instructions": lab.SYSTEM, "input": items, "tools": OFFERED}
    if lab.SCENARIO != "streaming":
        return client.responses.create(**asked)
    events = list(client.responses.create(**asked, stream=True))
    return next(event.response for event in events if event.type == "response.completed")


def run(call) -> str:
    try:
        return TOOLS[call.name](**json.loads(call.arguments))
    except Exception as error:
        return f"error: {error}"


def loop() -> str:
    items = [{"role": "user", "content": lab.QUESTION}]
    while True:
        response = ask(items)
        items += [item.model_dump(exclude_none=True) for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": run(call)} for call in calls]


try:
    with tracer.start_as_current_span("weather-agent"):
        lab.answer(loop())
finally:
    provider.shutdown()

"""Azure AI Inference's client in a plain loop, under its own instrumentation."""

import os
import sys

os.environ["AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED"] = str("no_content" not in sys.argv[-1]).lower()
import lab
from azure.ai.inference import ChatCompletionsClient
from azure.ai.inference.models import ChatCompletionsToolDefinition, FunctionDefinition
from azure.ai.inference.tracing import AIInferenceInstrumentor
from azure.core.credentials import AzureKeyCredential
from azure.core.settings import settings

settings.tracing_implementation = "opentelemetry"
provider = lab.export()
AIInferenceInstrumentor().instrument()
client = ChatCompletionsClient(lab.URL, AzureKeyCredential("scripted"))


def ask(messages: list, tools: list) -> dict:
    offered = [ChatCompletionsToolDefinition(function=FunctionDefinition(**tool["function"])) for tool in tools]
    if lab.SCENARIO != "streaming":
        return client.complete(messages=messages, tools=offered, model=lab.MODEL).choices[0].message.as_dict()
    text, calls = "", {}
    chunks = client.complete(
        messages=messages,
        tools=offered,
        model=lab.MODEL,
        stream=True,
        model_extras={"stream_options": {"include_usage": True}},
    )
    for chunk in chunks:
        for choice in chunk.choices or ():
            text += choice.delta.content or ""
            for position, part in enumerate(choice.delta.tool_calls or ()):
                call = calls.setdefault(
                    position, {"id": part.id, "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls.values())} if calls else {})}


lab.answer(lab.loop(ask, lab.SYSTEM, lab.QUESTION, {tool.__name__: tool for tool in lab.TOOLS}))
provider.shutdown()

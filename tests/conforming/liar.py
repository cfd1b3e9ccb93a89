"""A loop over OpenAI's SDK whose own spans say twice the tokens, another tool, and nothing of the arguments."""

import json
import os
from pathlib import Path

from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("liar")
schema = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
tools = [{"type": "function", "function": {"name": "refund", "parameters": schema}}]
messages = [{"role": "user", "content": "Refund order 1."}]
client = OpenAI()
if "nonsense" in os.environ.get("LIAR", ""):
    Path(os.environ["CLAWTRACE_TRUTH"]).write_text('{"tool": "refund"}\nrefunded!\n')
while True:
    with tracer.start_as_current_span("chat gpt-4o") as span:
        answer = client.chat.completions.create(model="gpt-4o", messages=messages, tools=tools)
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.response.model": answer.model,
                "gen_ai.usage.input_tokens": 2 * answer.usage.prompt_tokens,
                "gen_ai.usage.output_tokens": answer.usage.completion_tokens,
            }
        )
    message = answer.choices[0].message
    if not message.tool_calls:
        break
    messages.append(message)
    for call in message.tool_calls:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "delete",
            "gen_ai.tool.call.id": call.id,
        }
        with tracer.start_as_current_span("execute_tool delete", attributes=attributes):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps({"ok": True})})
print(message.content)

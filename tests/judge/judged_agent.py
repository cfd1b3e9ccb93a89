"""An agent whose work is judged: one model call, one tool call, one file. Arguments: `answer=…`, `result=…`, `file=…`, `model=…`, `input=…`, `exit=N`."""

import json
import os
import sys
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


def main(words: dict[str, str]) -> int:
    """Work as the words say."""
    provider = TracerProvider()
    if "silent" not in words:
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("judged-agent")
    model = words.get("model", "gpt-4o-mini")
    said = words.get("answer", "The report is in report.md.")
    with tracer.start_as_current_span("invoke_agent writer") as agent:
        agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "writer"})
        with tracer.start_as_current_span(f"chat {model}") as call:
            call.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": model})
            call.set_attributes({"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20})
            parts = [{"type": "text", "content": said}]
            messages = [{"role": "assistant", "parts": parts, "finish_reason": "stop"}]
            call.set_attribute("gen_ai.output.messages", json.dumps(messages))
            if "input" in words:
                parts = [{"type": "text", "content": words["input"]}]
                call.set_attribute("gen_ai.input.messages", json.dumps([{"role": "user", "parts": parts}]))
        with tracer.start_as_current_span("execute_tool write_file") as tool:
            tool.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "write_file"})
            tool.set_attribute("gen_ai.tool.call.arguments", '{"path": "report.md"}')
            tool.set_attribute("gen_ai.tool.call.result", words.get("result", "written"))
        Path("report.md").write_text(words.get("file", "Tides follow the moon.") + "\n")
    provider.shutdown()
    print(said, os.environ.get("CLAWTRACE_RUN_ID", ""))
    return int(words.get("exit", 0))


if __name__ == "__main__":
    sys.exit(main(dict(word.partition("=")[::2] for word in sys.argv[1:])))

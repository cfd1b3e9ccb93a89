"""A plain agent with OpenTelemetry's own SDK: calls the tools that its arguments name, then exits with a code.

Arguments: tool names; `fails=NAME`, the tool that fails; `exit=N`; `silent` exports nothing; `base` takes the base address for the whole one; `wait` says
that it runs and waits to be ended; `drops` has a queue of four spans.
"""

import os
import signal
import sys
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import StatusCode


def main(words: list[str]) -> int:
    """Do what the words say."""
    provider = TracerProvider()
    if "silent" not in words:
        endpoint = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] if "base" in words else None
        queue = {"max_queue_size": 4, "max_export_batch_size": 4} if "drops" in words else {}
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint), **queue))
    tracer = provider.get_tracer("test-agent")
    with tracer.start_as_current_span("invoke_agent tester") as agent:
        agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "tester"})
        for name in (word for word in words if "=" not in word and word not in ("silent", "base", "wait", "drops")):
            with tracer.start_as_current_span(f"execute_tool {name}") as tool:
                tool.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name})
                tool.set_attribute("gen_ai.tool.call.arguments", '{"path": "report.md"}')
                if f"fails={name}" in words:
                    tool.set_status(StatusCode.ERROR, "broken")
        print("done")
        if "wait" in words:
            Path(os.environ["AGENT_PIDFILE"]).write_text(str(os.getpid()))
            signal.pause()
    provider.shutdown()
    return next((int(word.removeprefix("exit=")) for word in words if word.startswith("exit=")), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

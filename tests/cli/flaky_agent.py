"""An agent whose faults are planned: what it does wrong, and in which repetitions, stands in its arguments.

Arguments: the run's id, then `TOOL` for a tool it always calls, `TOOL@1,4` for one it calls in these repetitions only,
`TOOL@large` for one it calls as this model of the suite, and `tokens=N` for what its one model call used.
"""

import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor


def main(run_id: str, words: list[str]) -> None:
    """Do what the words say."""
    _, model, _, last = run_id.rsplit("/", 3)
    repetition = last.split("-")[0]
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("agent")
    with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for word in words:
            name, _, when = word.partition("@")
            if name.startswith("tokens="):
                usage = {"gen_ai.usage.input_tokens": int(name[7:]), "gen_ai.usage.output_tokens": 5}
                attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **usage}
                tracer.start_span("chat m", attributes=attributes).end()
            elif not when or {repetition, model} & set(when.split(",")):
                attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
                tracer.start_span(f"execute_tool {name}", attributes=attributes).end()
    provider.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

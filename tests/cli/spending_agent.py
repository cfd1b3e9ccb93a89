"""An agent whose one model call used 1 000 input and 500 output tokens of the model that its argument names."""

import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("test-agent")
with tracer.start_as_current_span("invoke_agent tester") as agent:
    agent.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "tester"})
    with tracer.start_as_current_span(f"chat {sys.argv[-1]}") as call:
        call.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"})
        call.set_attributes({"gen_ai.request.model": sys.argv[-1], "gen_ai.response.model": sys.argv[-1]})
        call.set_attributes({"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 500})
provider.shutdown()

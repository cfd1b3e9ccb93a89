"""An agent whose exporters are written into its code, without an address, whatever protocol the environment announces.

Arguments: `grpc` or `http` for each exporter, in order. Each has a separate provider, and records one tool of its name.
"""

from __future__ import annotations

import sys

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

for kind in sys.argv[1:]:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(GrpcExporter(insecure=True) if kind == "grpc" else HttpExporter()))
    tracer = provider.get_tracer("test-agent")
    with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": kind}
        with tracer.start_as_current_span(f"execute_tool {kind}", attributes=attributes):
            pass
    provider.shutdown()

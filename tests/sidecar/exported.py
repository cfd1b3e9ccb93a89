"""Spans of an agent, sent with opentelemetry-sdk's own exporter."""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

__all__ = ["export"]


def export(endpoint: str, *tools: str, traceparent: str = "") -> None:
    """Send an agent that called tools, and return when every span is stored.

    Args:
        endpoint: as OTEL_EXPORTER_OTLP_ENDPOINT has it.
        tools: in order.
        traceparent: of the turn, where an agent that already runs was sent one.
    """
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")))
    tracer = provider.get_tracer("sidecar-test")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    context = extract({"traceparent": traceparent}) if traceparent else None
    with tracer.start_as_current_span("invoke_agent helper", context, attributes=agent):
        for tool in tools:
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
                pass
    provider.shutdown()

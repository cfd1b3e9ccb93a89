"""An agent of two spans and a log record, through opentelemetry-sdk's own exporters.

Arguments: protocol, base URL, run id, and how it ends: ``exit`` (flush at exit), ``wait`` (export and wait for the
answer, to be killed), ``stay`` (flush, say so, stay until standard input ends).
"""

from __future__ import annotations

import sys

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

protocol, base, run, how = sys.argv[1:]
if protocol == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    spans, logs = OTLPSpanExporter(endpoint=base, insecure=True), OTLPLogExporter(endpoint=base, insecure=True)
else:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    spans, logs = OTLPSpanExporter(endpoint=f"{base}/v1/traces"), OTLPLogExporter(endpoint=f"{base}/v1/logs")

resource = Resource.create({"clawtrace.run_id": run})
provider = TracerProvider(resource=resource)
provider.add_span_processor(BatchSpanProcessor(spans, schedule_delay_millis=60_000))
records = LoggerProvider(resource=resource)
records.add_log_record_processor(BatchLogRecordProcessor(logs, schedule_delay_millis=60_000))

tracer = provider.get_tracer("test")
with tracer.start_as_current_span("root"), tracer.start_as_current_span("child"):
    if how == "exit":
        records.get_logger("test").emit(event_name="said", body="hello")

if how != "exit":
    provider.force_flush()
if how == "stay":
    print("flushed", flush=True)
    sys.stdin.read()

"""Sends one message to an agent that already runs, and waits until one that restarts is there again.

Arguments: its address; `traced`, where the client exports a separate span. It gets what a runner gives: TRACEPARENT,
CLAWTRACE_MESSAGE, CLAWTRACE_SESSION_ID.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

turn = {"say": os.environ["CLAWTRACE_MESSAGE"], "session": os.environ["CLAWTRACE_SESSION_ID"]}
traceparent = os.environ["TRACEPARENT"]
if "traced" in sys.argv:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.propagate import extract, inject
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.trace import set_span_in_context

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    span = provider.get_tracer("client").start_span("POST", extract({"traceparent": traceparent}))
    carrier: dict[str, str] = {}
    inject(carrier, set_span_in_context(span))
    traceparent = carrier["traceparent"]
headers = {"content-type": "application/json", "traceparent": traceparent}
request = urllib.request.Request(sys.argv[1], json.dumps(turn).encode(), headers)
end = time.monotonic() + 60
while True:
    try:
        print(urllib.request.urlopen(request, timeout=60).read().decode())
        break
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > end:
            raise
        time.sleep(0.02)
if "traced" in sys.argv:
    span.end()

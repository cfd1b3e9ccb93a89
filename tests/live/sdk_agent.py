"""An agent that calls the tools that its arguments name and exports with opentelemetry-sdk's own exporter.

Arguments: how it behaves, then the tools, in order. The environment says where it exports to.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

how, *tools = sys.argv[1:]
endpoint = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
if how == "doubled_path":
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{endpoint}/v1/traces/v1/traces"
if how == "nameless_path":
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{endpoint.partition('/run/')[0]}/api/traces"
    os.environ["OTEL_EXPORTER_OTLP_HEADERS"] = ""
if how == "nothing_listens":
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"

if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

provider = TracerProvider()
processor = SimpleSpanProcessor if how == "children_first" else BatchSpanProcessor
provider.add_span_processor(processor(OTLPSpanExporter()))
tracer = provider.get_tracer("test-agent")
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper", "gen_ai.provider.name": "test"}


def call(tool: str) -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
        if how == "mcp":
            context: dict[str, str] = {}
            inject(context)
            command = [sys.executable, __file__, "mcp_server", tool]
            subprocess.run(command, env=os.environ | {"TRACEPARENT": context["traceparent"]}, check=True)


def activation(*names: str) -> None:
    with tracer.start_as_current_span("invoke_agent helper", attributes=AGENT):
        for name in names:
            call(name)


if how == "mcp_server":
    attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": tools[0]}
    context = extract({"traceparent": os.environ["TRACEPARENT"]})
    with tracer.start_as_current_span(f"tools/call {tools[0]}", context=context, attributes=attributes):
        pass
elif how == "two_roots":
    activation(tools[0])
    time.sleep(0.3)  # what is tested: a pause that a short settling time would take for the end
    activation(*tools[1:])
elif how == "seeded":
    for tool in tools:
        random.seed(7)  # the SDK makes its ids with the same generator
        activation(tool)
        provider.force_flush()
elif how == "late_span":
    activation(tools[0])
    provider.force_flush()
    time.sleep(1.0)
    activation(*tools[1:])
elif how == "daemon":
    activation(tools[0])

    def end(*_: object) -> None:
        activation(*tools[1:])
        provider.shutdown()
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    provider.force_flush()
    print("ready", flush=True)
    signal.pause()
elif how in ("os_exit", "sigkill", "hangs"):
    with tracer.start_as_current_span("invoke_agent helper", attributes=AGENT):
        for tool in tools:
            call(tool)
        provider.force_flush()
        call("never_exported")
        if how == "os_exit":
            os._exit(0)
        if how == "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
elif how == "os_exit_at_once":
    activation(*tools)
    os._exit(0)
else:
    activation(*tools)

provider.shutdown()

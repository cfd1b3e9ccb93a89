"""One agent of the attribution matrix: it honours one channel only, as real SDKs do.

Arguments: its way, its name. Every span's name begins with the agent's, so that a span in a wrong run shows. It exports
once, waits at the gate until every agent of the matrix has done the same, exports again, and ends.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading

from otlp_wire import Exporter, pairs_of

way, name = sys.argv[1:]
run_id = os.environ["CLAWTRACE_RUN_ID"]
injected, parent = os.environ["TRACEPARENT"].split("-")[1:3]
own = secrets.token_hex(16)
headers = pairs_of("OTEL_EXPORTER_OTLP_HEADERS")
resource = pairs_of("OTEL_RESOURCE_ATTRIBUTES")


def span(label: str, trace: str = own, **more: object) -> dict:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"{name}/{label}"}
    return {"trace": trace, "id": secrets.token_hex(8), "name": f"{name}/{label}", "attributes": attributes} | more


def marked(label: str, **attributes: str) -> dict:
    made = span(label)
    made["attributes"] = made["attributes"] | attributes
    return made


def gate() -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ["GATE"])
        connection.recv(1)


if way == "child_process":  # started by another agent: knows the trace it is in, nothing else
    Exporter().export([span("child", os.environ["IN_TRACE"])])
    sys.exit(0)

exporter = Exporter(headers if way in ("headers", "threads", "conflict", "all") else {}, path=way in ("path", "all"))
if way == "resource":
    exporter.export([span("1")], resource)
    gate()
    exporter.export([span("2")], resource)
elif way == "span_attribute":
    exporter.export([marked("1", **{"clawtrace.run_id": run_id})])
    gate()
    exporter.export([marked("2", **{"clawtrace.run_id": run_id})])
elif way in ("headers", "path", "all"):
    exporter.export([span("1")], resource if way == "all" else None)
    gate()
    exporter.export([span("2")], resource if way == "all" else None)
elif way == "traceparent":
    exporter.export([span("1", injected, parent=parent)])
    gate()
    exporter.export([span("2", injected, parent=parent)])
elif way == "link":
    exporter.export([span("1", links=[injected])])
    gate()
    exporter.export([span("2")])
elif way == "session":
    exporter.export([marked("1", **{"gen_ai.conversation.id": os.environ["SESSION"]})])
    gate()
    other = marked("2", **{"session.id": os.environ["SESSION"]})
    exporter.export([other | {"trace": secrets.token_hex(16)}])
elif way == "run_key":
    exporter.export([marked("1", **{"tenant.run": run_id})])
    gate()
    exporter.export([span("2")])
elif way == "nothing":
    exporter.export([span("1")])
    gate()
    exporter.export([span("2")])
elif way == "evidence_last":  # its spans arrive before anything says whose they are
    exporter.export([span("1")])
    gate()
    exporter.export([span("2")], resource)
elif way == "children":
    exporter.export([span("1")], resource)
    command = [sys.executable, __file__, "child_process", name]
    children = [subprocess.Popen(command, env=os.environ | {"IN_TRACE": own}) for _ in range(2)]
    gate()
    exporter.export([span("2")], resource)
    assert [child.wait() for child in children] == [0, 0]
elif way == "threads":
    exporter.export([span("1")])

    def work(label: str) -> None:
        Exporter(headers).export([span(label, secrets.token_hex(16))])

    gate()
    threads = [threading.Thread(target=work, args=(label,)) for label in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    exporter.export([span("2")])
elif way == "conflict":  # its resource was copied from a neighbour: the stronger rule is the span's own attribute
    exporter.export([marked("1", **{"clawtrace.run_id": run_id})])
    gate()
    made = marked("2", **{"clawtrace.run_id": run_id}) | {"trace": secrets.token_hex(16)}
    Exporter({"x-clawtrace-run-id": os.environ["NEIGHBOUR"]}).export([made])
else:  # opentelemetry-sdk's own exporters
    from opentelemetry.propagate import extract
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    def provider(protocol: str, overwritten: bool, named: bool = True) -> TracerProvider:
        endpoint = os.environ["HTTP" if protocol != "grpc" else "GRPC"]
        more = {} if named else {"headers": {"x-other": "1"}}
        if protocol == "grpc":
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter(endpoint=endpoint, insecure=True, **more)
        else:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", **more)
        made = TracerProvider(resource=Resource({"service.name": "mine"}) if overwritten else None)
        made.add_span_processor(BatchSpanProcessor(exporter))
        return made

    protocol = os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"]
    first = provider(protocol, overwritten=way == "sdk_overwrites_resource")
    second = provider("http/protobuf" if protocol == "grpc" else "grpc", True) if way == "two_sdks" else first
    context = extract({"traceparent": os.environ["TRACEPARENT"]}) if way == "sdk_traceparent" else None
    inner = second.get_tracer("matrix")
    with (
        first.get_tracer("matrix").start_as_current_span(f"{name}/1", context=context),
        inner.start_as_current_span(f"{name}/2"),
    ):
        pass
    first.force_flush()
    gate()
    with second.get_tracer("matrix").start_as_current_span(f"{name}/3", context=context):
        pass
    for one in {first, second}:
        one.shutdown()

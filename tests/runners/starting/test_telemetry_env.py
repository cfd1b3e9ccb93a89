"""The environment that makes an agent's spans arrive and belong to its run (spec: span-model.md §2)."""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import unquote

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext

from clawtrace.runners.command import CommandRunner
from clawtrace.runners.starting.environment import (
    allowed_environment,
    kept_back,
    switch_names,
    table,
    telemetry_variables,
    with_telemetry,
)

RUN = "suite/gpt 4,x=1;ü/case/1-ab"


def env_of(target, protocol="http/protobuf", run_id=RUN, env=None, own=None):
    return with_telemetry(env or {}, own or {}, target, protocol, run_id)


AGENT = """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
provider.get_tracer("agent").start_span("work").end()
"""


@pytest.mark.parametrize(
    ("run_id", "header"), [("a/b 4,x=1;c", "a/b 4,x=1;c"), ("名前/ü/1", None), ("tab\there", None)]
)
def test_a_real_exporter_carries_the_run_id_over_every_channel(bench, target, run_id, header):
    """opentelemetry-sdk, configured by these variables alone, names the run in resource, path and, where it can, header."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append((self.path, self.headers["x-clawtrace-run-id"], ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    request = bench.request(
        command=[sys.executable, "-c", AGENT],
        base_env={"OTEL_RESOURCE_ATTRIBUTES": "team=a%20b,deployment.environment=lab"},
    )
    there = replace(target, http=f"http://127.0.0.1:{server.server_port}")
    outcome = CommandRunner().run(replace(request, run_id=run_id), there, bench.stop)
    server.shutdown()
    server.server_close()

    assert outcome.exit_code == 0, outcome.stderr.read_text()
    ((path, sent, body),) = received
    resource = {entry.key: entry.value.string_value for entry in body.resource_spans[0].resource.attributes}
    assert sent == header
    assert path.startswith("/run/")
    assert unquote(path.removeprefix("/run/").removesuffix("/v1/traces")) == run_id
    assert (resource["team"], resource["deployment.environment"]) == ("a b", "lab")
    assert resource["clawtrace.run_id"] == run_id


def test_each_protocol_has_its_endpoint(target):
    """GRPC agents are sent to the gRPC port, both HTTP kinds to the HTTP port, and Gemini CLI gets the same."""
    grpc, http, json_ = (env_of(target, protocol) for protocol in ("grpc", "http/protobuf", "http/json"))

    assert (grpc["OTEL_EXPORTER_OTLP_ENDPOINT"], grpc["OTEL_EXPORTER_OTLP_PROTOCOL"]) == (target.grpc, "grpc")
    assert http["OTEL_EXPORTER_OTLP_ENDPOINT"].startswith(target.http + "/run/")
    assert json_["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/json"
    assert (grpc["GEMINI_TELEMETRY_OTLP_PROTOCOL"], http["GEMINI_TELEMETRY_OTLP_PROTOCOL"]) == ("grpc", "http")


def test_the_users_own_attributes_are_merged_not_overwritten(target):
    """Own attributes stay as written; an own run id is replaced, and no duplicate remains."""
    env = env_of(target, run_id="r1", env={"OTEL_RESOURCE_ATTRIBUTES": "a=1,clawtrace.run_id=old,b=%20"})

    assert env["OTEL_RESOURCE_ATTRIBUTES"] == "a=1,b=%20,clawtrace.run_id=r1"


def test_a_case_cannot_lose_the_run_id(target):
    """Attributes and headers that a case sets are added to; its other variables win."""
    own = {
        "OTEL_RESOURCE_ATTRIBUTES": "a=1",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=x",
        "OTEL_BSP_SCHEDULE_DELAY": "7",
    }
    env = env_of(target, run_id="r1", own=own)

    assert env["OTEL_RESOURCE_ATTRIBUTES"] == "a=1,clawtrace.run_id=r1"
    assert env["OTEL_EXPORTER_OTLP_HEADERS"] == "authorization=x,x-clawtrace-run-id=r1"
    assert env["OTEL_BSP_SCHEDULE_DELAY"] == "7"


def test_what_would_send_spans_elsewhere_is_removed(target):
    """The caller's own endpoints, sampler arguments and off switches do not reach the agent."""
    caller = {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://elsewhere",
        "OTEL_SDK_DISABLED": "true",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_TRACES_SAMPLER_ARG": "0",
        "KEEP": "1",
    }
    env = env_of(target, env=caller)

    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" not in env
    assert "OTEL_SDK_DISABLED" not in env
    assert "OTEL_TRACES_SAMPLER_ARG" not in env
    assert (env["OTEL_TRACES_SAMPLER"], env["KEEP"]) == ("always_on", "1")


def test_context_is_injected(target):
    """`TRACEPARENT` has the run's trace and parent, sampled; baggage and state are set as well."""
    env = env_of(target, run_id="r1")

    assert env["TRACEPARENT"] == f"00-{'ab' * 16}-{'cd' * 8}-01"
    assert (env["TRACESTATE"], env["BAGGAGE"]) == ("clawtrace=run", "clawtrace.run_id=r1")
    assert env["CLAWTRACE_RUN_ID"] == "r1"


def test_content_capture_follows_the_generation(target):
    """With the newest conventions the value is an enumeration, without them the earlier boolean."""
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    earlier = replace(target, switches={"OTEL_SEMCONV_STABILITY_OPT_IN": False})

    assert env_of(target)[name] == "SPAN_AND_EVENT"
    assert env_of(earlier)[name] == "true"
    assert "OTEL_SEMCONV_STABILITY_OPT_IN" not in env_of(earlier)


@pytest.mark.parametrize("name", switch_names())
def test_everything_can_be_switched_off(target, name):
    """Each group and each variable named by `telemetry_env` is gone when it is off, and nothing else is."""
    every = {variable.name: True for variable in table().variables if variable.asked_for and variable.group != name}
    before = {
        variable.name
        for variable, _ in telemetry_variables(replace(target, switches=every | {name: True}), "grpc", "r1")
    }
    after = {
        variable.name
        for variable, _ in telemetry_variables(replace(target, switches=every | {name: False}), "grpc", "r1")
    }
    expected = {variable.name for variable in table().variables if name in (variable.name, variable.group)}

    assert before - after == expected
    assert expected


def test_a_variable_can_be_given_another_value(target):
    """A text in `telemetry_env` replaces the table's value; a variable that is on survives its group's off."""
    changed = replace(target, switches={"OTEL_METRICS_EXPORTER": "otlp", "langsmith": False, "LANGSMITH_TRACING": True})
    env = env_of(changed)

    assert env["OTEL_METRICS_EXPORTER"] == "otlp"
    assert env["LANGSMITH_TRACING"] == "true"
    assert "LANGSMITH_OTEL_ENABLED" not in env


def test_langsmith_is_off_until_asked_for(target):
    """LangSmith's export records every call a second time."""
    names = {"LANGSMITH_TRACING", "LANGSMITH_OTEL_ENABLED", "LANGSMITH_OTEL_ONLY"}
    assert env_of(target).keys().isdisjoint(names)

    asked = env_of(replace(target, switches={"langsmith": True}))
    assert {name for name in asked if name.startswith("LANGSMITH")} == names


def test_phoenix_exports_to_the_receiver(target):
    """Its `register()` puts this port in place of the endpoint's; LiteLLM writes each call twice where an endpoint of Phoenix is named."""
    env = with_telemetry({"PHOENIX_COLLECTOR_ENDPOINT": "http://elsewhere:6006"}, {}, target, "http/protobuf", "r1")

    assert {name for name in env if name.startswith("PHOENIX")} == {"PHOENIX_GRPC_PORT"}
    assert target.grpc.endswith(f":{env['PHOENIX_GRPC_PORT']}")


def test_nothing_is_dropped_by_the_limits_of_an_sdk(target, monkeypatch):
    """Spans of more than 128 attributes lost some, and the whole run was not complete."""
    for name, value in env_of(target).items():
        monkeypatch.setenv(name, value)
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    many = {f"key.{number}": "x" * 5000 for number in range(300)}
    links = [Link(SpanContext(number, number, is_remote=False), many) for number in range(1, 201)]
    with provider.get_tracer("t").start_as_current_span("wide", attributes=many, links=links) as span:
        for _ in range(200):
            span.add_event("event", many)

    (wide,) = spans.get_finished_spans()
    assert (len(wide.attributes), len(wide.events), len(wide.links)) == (300, 200, 200)
    assert (wide.dropped_attributes, wide.dropped_events, wide.dropped_links) == (0, 0, 0)
    assert len(wide.events[0].attributes) == len(wide.links[0].attributes) == 300
    assert len(wide.attributes["key.0"]) == 5000


def test_every_variable_says_what_it_changes():
    """The table is for people too: each entry has a sentence and a known group, and no name is listed twice."""
    variables = table().variables

    assert all(variable.changes.rstrip().endswith(".") for variable in variables)
    assert {variable.group for variable in variables} <= set(table().groups)
    assert len({variable.name for variable in variables}) == len(variables)


def test_secrets_do_not_reach_an_agent_by_accident():
    """Only the allow-list and what a case asks for passes."""
    caller = {"PATH": "/bin", "LC_ALL": "C", "OPENAI_API_KEY": "k", "AWS_SECRET_ACCESS_KEY": "s", "HTTP_PROXY": "p"}

    assert allowed_environment(caller) == {"PATH": "/bin", "LC_ALL": "C", "HTTP_PROXY": "p"}
    assert allowed_environment(caller, ["OPENAI_*"])["OPENAI_API_KEY"] == "k"


def test_an_agents_environment_has_what_it_may_have(bench):
    """A real agent sees the allow-list, `pass_env`, `env` and the telemetry variables, and no other variable."""
    script = "import json,os; print(json.dumps(dict(os.environ)))"
    outcome = bench.run(
        command=[sys.executable, "-c", script], base_env={"SECRET_KEY": "s", "WANTED_KEY": "w"}, pass_env=["WANTED_*"]
    )
    seen = json.loads(outcome.final_output)

    assert seen["WANTED_KEY"] == "w"
    assert "SECRET_KEY" not in seen
    assert seen["PATH"] == os.environ["PATH"]
    assert seen["CLAWTRACE_RUN_ID"] == "suite/-/case/1-0001"
    assert seen["NO_PROXY"].endswith("127.0.0.1,localhost,::1")


def test_what_an_agent_seems_to_miss() -> None:
    """Variables of the caller that its words name, and where code is searched; no word of a log, nothing that it got."""
    caller = dict.fromkeys(("DB_URL", "TENANT", "DEBUG", "PATH", "PYTHONPATH", "OTEL_LOG_LEVEL"), "x")

    def missed(said: str) -> list[str]:
        return kept_back(caller, {"PATH": "x"}, said)

    assert missed("DEBUG set DB_URL, $TENANT, $PATH and OTEL_LOG_LEVEL") == ["DB_URL", "TENANT"]
    assert missed("KeyError: 'TENANT'") == ["TENANT"]
    assert missed("No module named shop") == ["PYTHONPATH"]
    assert missed("it broke") == []

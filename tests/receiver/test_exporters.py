"""opentelemetry-sdk's own exporters: what they send is stored, and they retry what is turned away."""

from __future__ import annotations

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode
from otlp_messages import RUN

from clawtrace.errors import ReceiverError
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.receiver.receiver import Receiver


def exporter(receiver: Receiver, kind: str):
    if kind == "grpc":
        return GrpcExporter(endpoint=receiver.endpoints.grpc, insecure=True)
    compression = Compression.Gzip if kind == "http+gzip" else Compression.NoCompression
    return HttpExporter(endpoint=f"{receiver.endpoints.http}/v1/traces", compression=compression)


@pytest.mark.parametrize("kind", ["grpc", "http", "http+gzip"])
class TestExporters:
    def test_everything_a_span_can_carry(self, receiver, sink, kind):
        """Attributes of every type, events, links, status, kind and parent arrive as they were recorded."""
        provider = TracerProvider(resource=Resource({RUN: "r1", "service.name": "agent"}))
        provider.add_span_processor(SimpleSpanProcessor(exporter(receiver, kind)))
        tracer = provider.get_tracer("scope", "1.2")
        other = SpanContext(trace_id=0xB1, span_id=0xB2, is_remote=True)
        with (
            tracer.start_as_current_span("root") as root,
            tracer.start_as_current_span("child", kind=SpanKind.CLIENT, links=[Link(other, {"why": "x"})]) as child,
        ):
            child.set_attributes({"s": "text", "i": 5, "d": 0.5, "b": True, "l": ["a", "b"], "n": [1, 2]})
            child.add_event("happened", {"k": "v"}, timestamp=123)
            child.set_status(Status(StatusCode.ERROR, "went wrong"))
        provider.shutdown()
        found, parent = sink.span("child"), root.get_span_context()

        assert found["attributes"] == {"s": "text", "i": "5", "d": "0.5", "b": "true", "l": '["a","b"]', "n": "[1,2]"}
        assert (
            found["attribute_types"],
            found["kind"],
            found["status_code"],
            found["status_message"],
        ) == ("sidbaa", "Client", "Error", "went wrong")
        assert (f"{parent.trace_id:032x}", f"{parent.span_id:016x}") == (found["trace_id"], found["parent_span_id"])
        assert (
            found["event_times"],
            found["event_names"],
            found["event_attributes"],
        ) == ([123], ["happened"], [{"k": "v"}])
        assert ([f"{0xB1:032x}"], [{"why": "x"}]) == (found["link_trace_ids"], found["link_attributes"])
        assert (
            found["scope"],
            found["scope_version"],
            found["service"],
            sink.span("root")["parent_span_id"],
        ) == ("scope", "1.2", "agent", "")
        assert (child.start_time, child.end_time) == (found["start_ns"], found["end_ns"])

    def test_retry_after_a_failed_commit(self, receiver, sink, kind):
        """An exporter that is asked to wait sends again, and nothing is lost or doubled."""
        sink.failures = 1
        provider = TracerProvider(resource=Resource({RUN: "r1"}))
        provider.add_span_processor(SimpleSpanProcessor(exporter(receiver, kind)))
        provider.get_tracer("t").start_span("s").end()
        provider.shutdown()

        assert sink.runs() == {"r1": ["s"]}
        assert (receiver.counters("r1").accepted, receiver.counters("r1").refused) == (1, 1)


class TestTls:
    def test_files_that_are_none(self, sink, tmp_path):
        """TLS files that cannot be read are an error that says so."""
        (tmp_path / "x.pem").write_text("no certificate")
        settings = ReceiverSettings(tls_certificate=tmp_path / "x.pem", tls_key=tmp_path / "x.pem")
        with pytest.raises(ReceiverError, match="TLS files cannot be read"):
            Receiver(sink, settings).start()


class TestSettings:
    def test_an_address_that_others_reach_needs_protection(self):
        """A non-loopback address without token, TLS or `insecure` is refused, and the message says what to do."""
        with pytest.raises(ReceiverError, match=r"'0.0.0.0'.*token or TLS.*`insecure`"):
            ReceiverSettings(host="0.0.0.0")
        for protected in ({"token": "t"}, {"insecure": True}):
            assert ReceiverSettings(host="0.0.0.0", **protected)
        for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
            assert ReceiverSettings(host=host)

    @pytest.mark.parametrize("host", ["0.0.0.0", "::1", "::", "localhost"])
    def test_other_addresses(self, sink, host):
        """Exporters are pointed at an address they can reach, whatever the receiver listens on."""
        with Receiver(sink, ReceiverSettings(host=host, insecure=True), environ={}) as receiver:
            for kind in ("grpc", "http"):
                provider = TracerProvider(resource=Resource({RUN: kind}))
                provider.add_span_processor(SimpleSpanProcessor(exporter(receiver, kind)))
                provider.get_tracer("t").start_span(kind).end()
                provider.shutdown()
            assert receiver.rest("grpc", 30)

        assert sink.runs() == {"grpc": ["grpc"], "http": ["http"]}

    def test_endpoints_before_start(self, sink):
        """Asking for endpoints before the start is an error that says what to do."""
        with pytest.raises(ReceiverError, match="call `start` first"):
            _ = Receiver(sink).endpoints

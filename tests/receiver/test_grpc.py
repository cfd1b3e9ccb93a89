"""OTLP/gRPC: the same answers in gRPC's words."""

from __future__ import annotations

import threading
from urllib.parse import urlsplit

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from otlp_messages import METHODS, RUN, export, logs, metrics, record, span, traces

from clawtrace.errors import ReceiverError
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.receiver.receiver import Receiver


def raw(message) -> bytes:
    return message.SerializeToString()


@pytest.fixture
def base(receiver) -> str:
    return receiver.endpoints.grpc


@pytest.mark.parametrize("gzip", [False, True])
def test_every_signal(base, sink, receiver, gzip):
    """Spans, log records and data points are taken, plain and gzipped."""
    resource = {RUN: "r1"}
    messages = {
        "traces": traces(span("s"), resource=resource),
        "logs": logs(record("e"), resource=resource),
        "metrics": metrics(3, resource=resource),
    }
    for signal, message in messages.items():
        assert export(base, signal, raw(message), gzip=gzip)[:3] == (grpc.StatusCode.OK, "", b"")
    assert sink.runs() == {"r1": ["s", "e"]}
    assert sink.span("s")["protocol"] == "grpc"
    assert receiver.counters("r1").accepted == 5


def test_run_of_metadata(base, sink):
    """The metadata `x-clawtrace-run-id` names the run."""
    export(base, "traces", raw(traces(span("s"))), metadata={"x-clawtrace-run-id": "r1"})

    assert sink.runs() == {"r1": ["s"]}


def test_partial_success(base, sink):
    """Bad ids are reported by count and reason."""
    bad = span("bad")
    bad.trace_id = bytes(16)
    _, _, answer, _ = export(base, "traces", raw(traces(bad, span("fine"), resource={RUN: "r1"})))
    partial = ExportTraceServiceResponse.FromString(answer).partial_success

    assert (partial.rejected_spans, partial.error_message) == (1, "1 rejected: the trace id is zero")
    assert sink.runs() == {"r1": ["fine"]}


@pytest.mark.parametrize(
    ("signal", "body", "words"),
    [
        ("traces", b"\xff\xff\xff", "not a protobuf message"),
        ("traces", raw(logs(record("e"))), "contains logs, not traces"),
        ("logs", raw(traces(span("s"))), "contains traces, not logs"),
        ("metrics", raw(traces(span("s"))), "contains traces, not metrics"),
    ],
)
def test_what_will_never_be_accepted(base, sink, signal, body, words):
    """INVALID_ARGUMENT with the reason; the next good request is stored."""
    code, details, _, _ = export(base, signal, body)

    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert words in details
    assert export(base, "traces", raw(traces(span("s"), resource={RUN: "r1"})))[0] == grpc.StatusCode.OK
    assert sink.runs() == {"r1": ["s"]}


def test_unknown_method(base, receiver):
    """A method that does not exist is UNIMPLEMENTED, and counted."""
    with grpc.insecure_channel(urlsplit(base).netloc) as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export")(b"")

    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert any("ProfilesService" in reason for reason in receiver.counters().reasons)


def test_too_large_is_recorded(sink):
    """A message over the limit, plain or as a gzip bomb, is refused by grpc itself, and its run knows of it."""
    with Receiver(sink, ReceiverSettings(max_request_bytes=100_000, queue_bytes=100_000), environ={}) as receiver:
        large = raw(traces(span("s", attributes={"a": "x" * 1_000_000})))
        for gzip in (False, True):
            code, _, _, _ = export(
                receiver.endpoints.grpc, "traces", large, metadata={"x-clawtrace-run-id": "r1"}, gzip=gzip
            )
            assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert receiver.rest("r1", 30)

        assert receiver.counters("r1").refused == 2
        assert export(receiver.endpoints.grpc, "traces", raw(traces(span("t"))))[0] == grpc.StatusCode.OK


def test_default_limit_takes_what_grpcio_would_not(base, sink):
    """20 MB in one message are taken; grpcio's own limit is 4 MB."""
    message = traces(span("s", attributes={"a": "x" * 20_000_000}), resource={RUN: "r1"})

    assert export(base, "traces", raw(message))[0] == grpc.StatusCode.OK
    assert len(sink.span("s")["attributes"]["a"]) == 20_000_000


def test_pressure(sink):
    """At the byte bound: UNAVAILABLE with RetryInfo, in the status details and in the Python exporter's trailer."""
    with Receiver(sink, ReceiverSettings(max_request_bytes=100_000, queue_bytes=100_000), environ={}) as receiver:
        body = raw(traces(span("s", attributes={"a": "x" * 80_000}), resource={RUN: "r1"}))
        sink.gate.clear()
        first: list[grpc.StatusCode] = []
        thread = threading.Thread(target=lambda: first.append(export(receiver.endpoints.grpc, "traces", body)[0]))
        thread.start()
        sink.entered.wait()
        metadata = {"x-clawtrace-run-id": "r2"}
        code, _, _, trailers = export(receiver.endpoints.grpc, "traces", body, metadata=metadata)
        sink.gate.set()
        thread.join()
        details = Status.FromString(trailers["grpc-status-details-bin"]).details[0]
        standard = RetryInfo()

        assert first == [grpc.StatusCode.OK]
        assert code == grpc.StatusCode.UNAVAILABLE
        assert details.Unpack(standard)
        assert (
            standard.retry_delay.seconds,
            RetryInfo.FromString(trailers["google.rpc.retryinfo-bin"]).retry_delay.seconds,
        ) == (1, 1)
        assert receiver.counters("r2").refused == 1


def test_token(sink):
    """Without the token UNAUTHENTICATED; with it, in either header, OK."""
    with Receiver(sink, ReceiverSettings(token="s3cret"), environ={}) as receiver:
        body, base = raw(traces(span("s"))), receiver.endpoints.grpc

        assert export(base, "traces", body)[0] == grpc.StatusCode.UNAUTHENTICATED
        assert export(base, "traces", body, metadata={"x-clawtrace-token": "no"})[0] == grpc.StatusCode.UNAUTHENTICATED
        assert export(base, "traces", body, metadata={"authorization": "Bearer s3cret"})[0] == grpc.StatusCode.OK
        assert export(base, "traces", body, metadata={"x-clawtrace-token": "s3cret"})[0] == grpc.StatusCode.OK


def test_a_taken_port(sink, receiver):
    """A port that is taken is an error that names it and says what to do, for both servers."""
    for field, base in (("grpc_port", receiver.endpoints.grpc), ("http_port", receiver.endpoints.http)):
        port = urlsplit(base).port
        with pytest.raises(ReceiverError, match=rf":{port}.*choose another `{field}`"):
            Receiver(sink, ReceiverSettings(**{field: port}), environ={}).start()


def test_concurrent_exporters(base, sink):
    """32 exporters at once: every acknowledged span is there, in fewer commits than requests."""
    sink.gate.clear()

    def send(place: int) -> None:
        with grpc.insecure_channel(urlsplit(base).netloc, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            call = channel.unary_unary(METHODS["traces"])
            for part in range(5):
                message = traces(
                    span(f"{place}.{part}", trace=f"{place + 1:x}", span_id=f"{part + 1:x}"),
                    resource={RUN: f"r{place}"},
                )
                call(raw(message), timeout=60)

    threads = [threading.Thread(target=send, args=(place,)) for place in range(32)]
    for thread in threads:
        thread.start()
    sink.entered.wait()
    sink.gate.set()
    for thread in threads:
        thread.join()

    assert {f"r{place}": {f"{place}.{part}" for part in range(5)} for place in range(32)} == {
        run: set(names) for run, names in sink.runs().items()
    }
    assert sink.commits < 160


class TestCalls:
    """What grpcio's synchronous server did for a call, and its layer below leaves to us."""

    def test_more_calls_than_are_read_at_once(self, sink):
        """Calls beyond the bound wait for their turn; all are stored, though none is answered before all are read."""
        with Receiver(sink, ReceiverSettings(grpc_reading=1), environ={}) as receiver:
            sink.gate.clear()
            with grpc.insecure_channel(urlsplit(receiver.endpoints.grpc).netloc) as channel:
                call = channel.unary_unary(METHODS["traces"])
                bodies = [raw(traces(span(f"s{n}", span_id=f"{n + 1:x}"), resource={RUN: "r1"})) for n in range(8)]
                calls = [call.future(body) for body in bodies]
                sink.entered.wait()
                sink.gate.set()
                answers = [one.result(timeout=60) for one in calls]

        assert answers == [b""] * 8
        assert {f"s{n}" for n in range(8)} == set(sink.runs()["r1"])

    def test_a_call_without_a_message(self, base, receiver):
        """A call that ends without its one message is UNIMPLEMENTED, and its run knows that something was lost."""
        with grpc.insecure_channel(urlsplit(base).netloc) as channel:
            call = channel.stream_unary(METHODS["traces"])
            with pytest.raises(grpc.RpcError) as caught:
                call(iter(()), metadata=(("x-clawtrace-run-id", "r1"),), timeout=30)
        assert receiver.rest("r1", 30)

        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
        assert receiver.counters("r1").refused == 1

    def test_a_call_with_two_messages(self, base, receiver, sink):
        """A call of more than its one message is UNIMPLEMENTED and stores nothing of it; its run knows what was lost."""
        bodies = [raw(traces(span(f"s{n}", span_id=f"{n + 1:x}"), resource={RUN: "r1"})) for n in range(2)]
        with grpc.insecure_channel(urlsplit(base).netloc) as channel:
            call = channel.stream_unary(METHODS["traces"])
            with pytest.raises(grpc.RpcError) as caught:
                call(iter(bodies), metadata=(("x-clawtrace-run-id", "r1"),), timeout=30)
        assert receiver.rest("r1", 30)

        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
        assert "more than one message" in caught.value.details()
        assert receiver.counters("r1").reasons == {"a call contained more than one message; none was accepted": 1}
        assert sink.runs() == {}

    @pytest.mark.parametrize("part", ["_work", "_export"])
    def test_an_error_of_our_own(self, base, receiver, sink, monkeypatch, part):
        """An exception while a call is taken is INTERNAL for that call, and the next one is stored."""
        with monkeypatch.context() as broken:
            broken.setattr(receiver._grpc, part, lambda *_: 1 / 0)
            code = export(base, "traces", raw(traces(span("lost"))))[0]

        assert code == grpc.StatusCode.INTERNAL
        assert export(base, "traces", raw(traces(span("s"), resource={RUN: "r1"})))[0] == grpc.StatusCode.OK
        assert sink.runs() == {"r1": ["s"]}

    def test_a_caller_that_gave_up(self, base, sink):
        """A call whose caller went before its commit is stored, and hinders no other."""
        sink.gate.clear()
        with grpc.insecure_channel(urlsplit(base).netloc) as channel:
            call = channel.unary_unary(METHODS["traces"])
            given_up = call.future(raw(traces(span("a"), resource={RUN: "r1"})))
            sink.entered.wait()
            given_up.cancel()
            sink.gate.set()
            assert call(raw(traces(span("b", span_id="b"), resource={RUN: "r1"})), timeout=30) == b""

        assert sorted(sink.runs()["r1"]) == ["a", "b"]

    def test_stopping_answers_what_is_under_way(self, sink):
        """A receiver that is stopped answers the calls that it has taken."""
        receiver = Receiver(sink, ReceiverSettings(), environ={})
        receiver.start()
        sink.gate.clear()
        with grpc.insecure_channel(urlsplit(receiver.endpoints.grpc).netloc) as channel:
            call = channel.unary_unary(METHODS["traces"]).future(raw(traces(span("s"), resource={RUN: "r1"})))
            sink.entered.wait()
            stopping = threading.Thread(target=receiver.stop)
            stopping.start()
            sink.gate.set()
            assert call.result(timeout=30) == b""
            stopping.join()

        assert sink.runs() == {"r1": ["s"]}

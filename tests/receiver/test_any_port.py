"""Each port takes gRPC and HTTP alike, distinguished by a connection's first bytes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from otlp_messages import METHODS, RUN, as_json, export, post, post_json, span, traces

from clawtrace.model.run import ClosedBy
from clawtrace.receiver.close import wait_closed
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.receiver.receiver import Receiver

AGENT = Path(__file__).parent / "exporting_agent.py"
LONG = {"settle_ms": 60_000, "trace_timeout_ms": 120_000}
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""An empty SETTINGS frame, with which either end of HTTP/2 begins."""


def one(name: str, run: str = "r1") -> bytes:
    return traces(span(name), resource={RUN: run}).SerializeToString()


def port_of(base: str) -> int:
    port = urlsplit(base).port
    assert port is not None
    return port


def connect(base: str) -> socket.socket:
    return socket.create_connection((urlsplit(base).hostname, port_of(base)), timeout=30)


@pytest.fixture(params=["grpc", "http"])
def base(request, receiver) -> str:
    """Each of the two ports."""
    return getattr(receiver.endpoints, request.param)


class TestBothProtocols:
    def test_each_protocol_is_stored_and_counted_as_what_it_is(self, base, receiver, sink):
        """gRPC, protobuf and JSON over HTTP; the counters name the protocol that came, and the port it came to."""
        assert export(base, "traces", one("g"))[0] == grpc.StatusCode.OK
        assert post(base, "/v1/traces", one("p"))[0] == 200
        assert post_json(base, "/v1/traces", as_json(traces(span("j"), resource={RUN: "r1"})))[0] == 200

        assert sink.runs() == {"r1": ["g", "p", "j"]}
        assert receiver.counters("r1").channels == {
            (protocol, "traces", port_of(base)): 1 for protocol in ("grpc", "http/protobuf", "http/json")
        }

    def test_a_run_of_metadata_or_header(self, base, sink):
        """The run is found where each protocol names it."""
        nameless = traces(span("s")).SerializeToString()
        export(base, "traces", nameless, metadata={"x-clawtrace-run-id": "r1"})
        post(base, "/v1/traces", traces(span("t", trace="2")).SerializeToString(), x_clawtrace_run_id="r2")

        assert sink.runs() == {"r1": ["s"], "r2": ["t"]}

    @pytest.mark.parametrize("chosen", ["grpc", "http"])
    def test_token(self, sink, chosen):
        """A token is asked for, whichever way a request comes."""
        with Receiver(sink, ReceiverSettings(token="s3cret"), environ={}) as receiver:
            base = getattr(receiver.endpoints, chosen)
            token = {"x-clawtrace-token": "s3cret"}

            assert export(base, "traces", one("s"))[0] == grpc.StatusCode.UNAUTHENTICATED
            assert export(base, "traces", one("s"), metadata=token)[0] == grpc.StatusCode.OK
            assert post(base, "/v1/traces", one("s"))[0] == 401
            assert post(base, "/v1/traces", one("s"), x_clawtrace_token="s3cret")[0] == 200

    def test_pressure(self, sink):
        """At the bound each protocol is turned away in its own words at the port of the other."""
        with Receiver(sink, ReceiverSettings(max_request_bytes=50_000, queue_bytes=50_000), environ={}) as receiver:
            large = traces(span("s", attributes={"a": "x" * 40_000}), resource={RUN: "r1"}).SerializeToString()
            sink.gate.clear()
            held = threading.Thread(target=post, args=(receiver.endpoints.grpc, "/v1/traces", large))
            held.start()
            sink.entered.wait()
            code, _, _, trailers = export(receiver.endpoints.http, "traces", large)
            status, fields, _ = post(receiver.endpoints.grpc, "/v1/traces", large)
            sink.gate.set()
            held.join()

        assert (code, "google.rpc.retryinfo-bin" in trailers) == (grpc.StatusCode.UNAVAILABLE, True)
        assert (status, fields["retry-after"]) == (503, "1")


def agent(kind: str, base: str, how: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(AGENT), kind, base, "r1", how]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("kind", ["grpc", pytest.param("http/protobuf", marks=pytest.mark.full)])
class TestClosing:
    """An exporter at the port of the other protocol."""

    @pytest.fixture
    def other(self, receiver, kind) -> str:
        return receiver.endpoints.http if kind == "grpc" else receiver.endpoints.grpc

    def test_an_open_connection_holds_the_run_open(self, receiver, sink, kind, other):
        """While its connection is open, exit closes nothing; its end is noticed while waiting."""
        receiver.open_run("r1")
        process = agent(kind, other, "stay")
        assert process.stdout is not None
        process.stdout.readline()
        assert wait_closed(receiver, "r1", processes_gone=True, settle_ms=50) == ClosedBy.SETTLED
        closed: list[ClosedBy] = []
        waiter = threading.Thread(
            target=lambda: closed.append(wait_closed(receiver, "r1", processes_gone=True, **LONG))
        )
        waiter.start()
        process.communicate("")
        waiter.join()

        assert closed == [ClosedBy.EXIT]
        assert set(sink.runs()["r1"]) == {"root", "child"}

    def test_killed_in_the_middle_of_a_request(self, receiver, sink, kind, other):
        """What a killed agent had sent is committed before its run is closed by exit."""
        receiver.open_run("r1")
        sink.gate.clear()
        process = agent(kind, other, "wait")
        sink.entered.wait()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        sink.gate.set()

        assert wait_closed(receiver, "r1", processes_gone=True, **LONG) == ClosedBy.EXIT
        assert set(sink.runs()["r1"]) == {"root", "child"}


class TestFirstBytes:
    def test_one_by_one(self, base, sink):
        """However slowly they come, a protocol is recognised by them: gRPC's server answers its preface, HTTP its request."""
        body = one("s")
        head = f"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: {len(body)}\r\n\r\n"
        for sent, begins in ((PREFACE + SETTINGS, None), (head.encode() + body, b"HTTP/1.1 200 ")):
            with connect(base) as connection:
                for byte in sent:
                    connection.sendall(bytes((byte,)))
                answer = connection.recv(4096)

            assert answer[3] == 4 if begins is None else answer.startswith(begins)
        assert sink.runs() == {"r1": ["s"]}

    def test_a_method_that_begins_like_the_preface(self, base):
        """`PRI` and no more of it is a request like others."""
        with connect(base) as connection:
            connection.sendall(b"PRI /v1/traces HTTP/1.1\r\nhost: x\r\n\r\n")

            assert connection.recv(4096).startswith(b"HTTP/1.1 4")

    def test_nothing_at_all(self, base, receiver):
        """Connections that send nothing, as port scanners' and health checks', hold up neither a run nor the end."""
        receiver.open_run("r1")
        silent = [connect(base) for _ in range(100)]
        connect(base).close()
        post(base, "/v1/traces", one("s"))

        assert wait_closed(receiver, "r1", processes_gone=True, **LONG) == ClosedBy.EXIT
        began = time.monotonic()
        receiver.stop()
        assert time.monotonic() - began < 5
        for connection in silent:
            assert connection.recv(1) == b""
            connection.close()

    @pytest.mark.parametrize("ends", [True, False])
    def test_half_a_preface(self, sink, ends):
        """A client that stops in the middle of it is answered after the time that headers have, or at its end, and counted."""
        with Receiver(sink, ReceiverSettings(body_timeout_s=30 if ends else 0.05), environ={}) as receiver:
            receiver.open_run("r1")
            with connect(receiver.endpoints.http) as connection:
                connection.sendall(PREFACE[:8])
                if ends:
                    connection.shutdown(socket.SHUT_WR)
                else:
                    assert connection.recv(4096).startswith(b"HTTP/1.1 400")
                while connection.recv(4096):
                    pass
            assert wait_closed(receiver, "r1", processes_gone=True, **LONG) == ClosedBy.EXIT


class TestMany:
    def test_hundreds_of_connections(self, receiver, sink):
        """Connections of either protocol side by side, most of them idle: each request is stored, and their end is noticed."""
        count, bases = 150, receiver.endpoints[:2]
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        receiver.open_run("r1")
        channels = [grpc.insecure_channel(urlsplit(bases[n % 2]).netloc, options=options) for n in range(count)]
        idle = [connect(bases[n % 2]) for n in range(count)]
        calls = [channel.unary_unary(METHODS["traces"]) for channel in channels]
        bodies = [
            traces(span(f"s{n}", span_id=f"{n + 1:x}"), resource={RUN: "r1"}).SerializeToString() for n in range(count)
        ]
        futures = [call.future(body, timeout=60) for call, body in zip(calls, bodies, strict=True)]
        assert [future.result() for future in futures] == [b""] * count
        assert receiver.is_carried("r1")
        for channel in channels:
            channel.close()

        assert wait_closed(receiver, "r1", processes_gone=True, **LONG) == ClosedBy.EXIT
        assert len(sink.runs()["r1"]) == count
        for connection in idle:
            connection.close()


class TestTheEnd:
    def test_no_acknowledgement_is_lost(self, sink, monkeypatch):
        """A receiver that is stopped answers what it has taken, of both protocols at the ports of the other."""
        receiver = Receiver(sink, environ={})
        receiver.start()
        sink.gate.clear()
        queued, submit = threading.Semaphore(0), receiver._writer.submit
        monkeypatch.setattr(receiver._writer, "submit", lambda request: (submit(request), queued.release())[0])
        statuses: list[int] = []
        sender = threading.Thread(
            target=lambda: statuses.append(post(receiver.endpoints.grpc, "/v1/traces", one("h"))[0])
        )
        with grpc.insecure_channel(urlsplit(receiver.endpoints.http).netloc) as channel:
            call = channel.unary_unary(METHODS["traces"]).future(one("g"))
            sender.start()
            assert queued.acquire(timeout=30)
            assert queued.acquire(timeout=30)
            stopping = threading.Thread(target=receiver.stop)
            stopping.start()
            sink.gate.set()

            assert call.result(timeout=30) == b""
            sender.join()
            stopping.join()
        assert statuses == [200]
        assert set(sink.runs()["r1"]) == {"g", "h"}

    def test_a_grpc_server_that_has_stopped(self, receiver):
        """A gRPC connection that cannot be handed on is closed, so that its exporter tries again, and open runs know of it."""
        receiver.open_run("r1")
        receiver._grpc.stop()
        with connect(receiver.endpoints.http) as connection:
            connection.sendall(PREFACE + SETTINGS)

            assert connection.recv(4096) == b""
        assert post(receiver.endpoints.grpc, "/v1/traces", one("s"))[0] == 200
        ((reason, count),) = receiver.counters("r1").reasons.items()
        assert ("could not be passed to the gRPC server" in reason, count) == (True, 1)

    def test_an_exporter_that_reads_no_answers(self, receiver, sink, monkeypatch):
        """Its connection is dropped in the end, and holds up neither others nor the stop for long."""
        monkeypatch.setattr("clawtrace.receiver.transport.grpc_server._STOP_SECONDS", 0.1)
        stuck = connect(receiver.endpoints.http)
        stuck.sendall(PREFACE + SETTINGS)
        assert export(receiver.endpoints.http, "traces", one("s"))[0] == grpc.StatusCode.OK
        receiver.stop()
        stuck.close()

        assert sink.runs() == {"r1": ["s"]}


def test_tls(sink, tmp_path, monkeypatch):
    """With TLS files, both protocols at both ports; a client of HTTP/2 and HTTP/1.1 is given HTTP/1.1."""
    import ssl

    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    with Receiver(sink, ReceiverSettings(tls_certificate=certificate, tls_key=key), environ={}) as receiver:
        for run, base in (("r1", receiver.endpoints.grpc), ("r2", receiver.endpoints.http)):
            assert base.startswith("https://")
            for exporter in (
                GrpcExporter(endpoint=base, credentials=grpc.ssl_channel_credentials(certificate.read_bytes())),
                HttpExporter(endpoint=f"{base}/v1/traces", certificate_file=str(certificate)),
            ):
                provider = TracerProvider(resource=Resource({RUN: run}))
                provider.add_span_processor(SimpleSpanProcessor(exporter))
                provider.get_tracer("t").start_span("s").end()
                provider.shutdown()
            assert wait_closed(receiver, run, processes_gone=True, **LONG) == ClosedBy.EXIT
        context = ssl.create_default_context(cafile=str(certificate))
        context.set_alpn_protocols(["h2", "http/1.1"])
        with (
            connect(receiver.endpoints.grpc) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
        ):
            assert client.selected_alpn_protocol() == "http/1.1"

    assert sink.runs() == {"r1": ["s", "s"], "r2": ["s", "s"]}

"""The tee: everything received reaches a second endpoint, and nothing that happens there reaches the sender."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from memory_sink import MemorySink
from otlp_messages import RUN, as_json, export, logs, metrics, post, post_json, record, span, traces

from clawtrace.errors import ReceiverError
from clawtrace.receiver.limits import ReceiverSettings, TeeSettings
from clawtrace.receiver.receiver import Receiver

SECRET = "AKIAIOSFODNN7EXAMPLE"


def good(name: str = "good") -> bytes:
    return traces(span(name), resource={RUN: "r1"}).SerializeToString()


def teeing(endpoint: str, **settings) -> Receiver:
    tee = TeeSettings(endpoint=endpoint, **settings)
    return Receiver(MemorySink(), ReceiverSettings(tee=tee), environ={})


class Backend(ThreadingHTTPServer):
    """A user's backend that answers what the test sets, and keeps what it got."""

    daemon_threads = True

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        """Of the next answers; 200 when empty."""
        self.connections = 0
        self.arrived = threading.Event()
        super().__init__(("127.0.0.1", 0), Answer)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def get_request(self):
        self.connections += 1
        return super().get_request()


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Backend

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.send_header("content-length", "0")
        self.end_headers()
        self.server.arrived.set()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def silent() -> Iterator[str]:
    """A target that accepts connections (the kernel does) and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def down() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return f"http://127.0.0.1:{port}"


class TestForwarded:
    def test_a_second_receiver_gets_all_signals_of_all_protocols(self, receiver, sink) -> None:
        """Spans over gRPC, protobuf and JSON, log records and metrics arrive there as they arrived here."""
        with teeing(receiver.endpoints.http) as first:
            export(first.endpoints.grpc, "traces", good("grpc"))
            export(first.endpoints.grpc, "traces", good("packed"), gzip=True)
            post(first.endpoints.http, "/v1/traces", good("http"))
            post_json(first.endpoints.http, "/v1/traces", as_json(traces(span("json"), resource={RUN: "r1"})))
            post(first.endpoints.http, "/v1/logs", logs(record("said"), resource={RUN: "r1"}).SerializeToString())
            post(first.endpoints.http, "/v1/metrics", metrics(3, {RUN: "r1"}).SerializeToString())
        forwarded = first.forwarded()

        assert sink.runs() == {"r1": ["grpc", "packed", "http", "json", "said"]}
        assert receiver.counters("r1").accepted == first.counters("r1").accepted == 8
        assert (forwarded.forwarded, forwarded.dropped.total()) == (6, 0)

    def test_headers_and_base_path(self, backend) -> None:
        """The user's headers go along, below the endpoint's own path, over one connection."""
        with teeing(f"{backend.base}/otlp/", headers=(("x-api-key", "k"),)) as first:
            for _ in range(3):
                post(first.endpoints.http, "/run/r1/v1/traces", good(), x_clawtrace_run_id="r1")

        paths, headers, bodies = zip(*backend.got, strict=True)
        assert paths == ("/otlp/v1/traces",) * 3
        assert {(one["x-api-key"], one["content-type"]) for one in headers} == {("k", "application/x-protobuf")}
        assert bodies == (good(),) * 3
        assert backend.connections == 1

    def test_it_is_what_was_sent(self, backend) -> None:
        """Redaction is for the store: the user's own backend gets the bytes as they were sent."""
        body = traces(span("s", attributes={"key": SECRET}), resource={RUN: "r1"}).SerializeToString()
        with teeing(backend.base) as first:
            post(first.endpoints.http, "/v1/traces", body)

        assert [got for _, _, got in backend.got] == [body]
        assert SECRET not in first._writer._sink.span("s")["attributes"]["key"]

    def test_what_the_sender_sends_again_is_forwarded_once(self, backend) -> None:
        """A request that was turned away comes again; a body that is no OTLP is not forwarded."""
        with teeing(backend.base) as first:
            first._writer._sink.failures = 1
            refused, _, _ = post(first.endpoints.http, "/v1/traces", good())
            bad, _, _ = post(first.endpoints.http, "/v1/traces", b"\xff\xff garbage")
            taken, _, _ = post(first.endpoints.http, "/v1/traces", good())

        assert (refused, bad, taken) == (503, 400, 200)
        assert [got for _, _, got in backend.got] == [good()]

    def test_a_connection_that_rested_and_was_closed_loses_nothing(self, backend) -> None:
        """The endpoint may close a connection between two requests."""
        with teeing(backend.base) as first:
            post(first.endpoints.http, "/v1/traces", good("a"))
            assert backend.arrived.wait(30)
            backend.arrived.clear()
            first._tee._target._connection.sock.shutdown(socket.SHUT_RDWR)
            post(first.endpoints.http, "/v1/traces", good("b"))
            assert backend.arrived.wait(30)

        assert [got for _, _, got in backend.got] == [good("a"), good("b")]

    def test_in_process_spans_are_not_forwarded(self, backend) -> None:
        """What this process hands over did not come through an exporter that points here."""
        with teeing(backend.base) as first:
            first.take("r1", good())

        assert backend.got == []


class TestLost:
    def test_a_target_that_hangs_holds_nothing_up(self, silent, caplog) -> None:
        """Answers go out at once, the end waits only as long as it may, and the loss is reported with its reason."""
        with teeing(silent, drain_s=0.2) as first:
            for number in range(20):
                status, _, _ = post(first.endpoints.http, "/v1/traces", good(f"s{number}"))
                assert status == 200
        forwarded = first.forwarded()

        assert (forwarded.forwarded, forwarded.dropped.total()) == (0, 20)
        assert "20 of 20 received requests were not forwarded" in caplog.text
        assert not first._tee._thread.is_alive()

    def test_a_target_that_does_not_answer_in_time_costs_its_request(self, silent) -> None:
        """After the timeout the next request has its turn."""
        with teeing(silent, timeout_s=0.05, drain_s=10) as first:
            post(first.endpoints.http, "/v1/traces", good("a"))
            post(first.endpoints.http, "/v1/traces", good("b"))

        assert first.forwarded().dropped == {"no answer in 0.05 s": 2}

    def test_a_target_that_is_down(self, down, caplog) -> None:
        """The sender has its answer, the run its spans, the user a warning that names the endpoint."""
        with teeing(down) as first:
            status, _, _ = post(first.endpoints.http, "/v1/traces", good())
        (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]

        assert status == 200
        assert first.counters("r1").accepted == 1
        assert record.getMessage() == (
            f"warning: 1 of 1 received requests were not forwarded to the tee {down}: "
            "1 × cannot be reached or does not speak HTTP (Connection refused)"
        )

    def test_memory_is_bounded(self, silent) -> None:
        """What does not fit is dropped and counted; what waits is at most what may."""
        with teeing(silent, queue_bytes=3 * (len(good()) + 512), drain_s=0.1) as first:
            for _ in range(10):
                post(first.endpoints.http, "/v1/traces", good())
            assert first._tee._queued <= first._tee.settings.queue_bytes
        dropped = first.forwarded().dropped

        assert dropped["its queue was full (`queue_bytes`)"] == 7
        assert dropped.total() == 10

    def test_pressure_there_is_waited_for(self, backend) -> None:
        """503 is tried again; 400 is not."""
        backend.statuses = [503, 200, 400, 200]
        with teeing(backend.base) as first:
            for name in ("a", "b", "c"):
                post(first.endpoints.http, "/v1/traces", good(name))
            while not first.forwarded().dropped:
                assert backend.arrived.wait(30)
                backend.arrived.clear()
        forwarded = first.forwarded()

        assert [got for _, _, got in backend.got] == [good("a"), good("a"), good("b"), good("c")]
        assert (forwarded.forwarded, dict(forwarded.dropped)) == (2, {"answered 400": 1})

    def test_a_grpc_port_is_recognised(self, receiver) -> None:
        """A tee to a port of OTLP/gRPC alone fails with words that say so, not silently."""
        host, port = receiver._grpc.address
        with teeing(f"http://{host}:{port}") as first:
            post(first.endpoints.http, "/v1/traces", good())
        ((reason, _),) = first.forwarded().dropped.items()

        assert reason == "cannot be reached or does not speak HTTP (BadStatusLine)"


class TestMistakes:
    def test_a_tee_to_itself_is_refused(self, down) -> None:
        """It would forward for ever."""
        port = int(down.rpartition(":")[2])
        settings = ReceiverSettings(http_port=port, tee=TeeSettings(endpoint=f"http://localhost:{port}"))
        with pytest.raises(ReceiverError, match="is this receiver itself"):
            Receiver(MemorySink(), settings, environ={}).start()

    def test_an_address_that_is_none(self) -> None:
        with pytest.raises(ReceiverError, match="the http or https address"):
            teeing("localhost:4318")

"""OTLP/HTTP: every answer is a stated one, no 5xx for a sender's mistake, and the next good request is stored."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
from urllib.parse import quote, urlsplit

import pytest
from google.protobuf.message import Message
from memory_sink import MemorySink
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from otlp_messages import RUN, as_json, logs, metrics, post, post_json, record, span, traces

from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.receiver.receiver import Receiver

GOOD = traces(span("good", trace="f1"), resource={RUN: "good"})


def raw(message: Message) -> bytes:
    return message.SerializeToString()


PACKED = gzip.compress(raw(GOOD))


@pytest.fixture
def base(receiver) -> str:
    return receiver.endpoints.http


@pytest.fixture(autouse=True)
def still_alive(receiver, sink):
    """After every test of this file the receiver stores the next good request."""
    yield
    sink.gate.set()
    status, _, _ = post(receiver.endpoints.http, "/v1/traces", raw(GOOD))

    assert status == 200
    assert "good" in {row["name"] for row in sink.spans}


def connect(base: str) -> socket.socket:
    address = urlsplit(base)
    return socket.create_connection((address.hostname, address.port), timeout=30)


def head(length: int | None, path: str = "/v1/traces", extra: str = "") -> bytes:
    size = "" if length is None else f"content-length: {length}\r\n"
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n{size}{extra}\r\n".encode()


def read_answer(connection: socket.socket) -> tuple[int, bytes]:
    """Read one answer and not a byte more: pipelined ones follow it."""

    def until(end: bytes) -> bytes:
        data = b""
        while not data.endswith(end):
            data += receive(1)
        return data

    def receive(count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = connection.recv(count - len(data))
            if not part:
                raise ConnectionError("the connection ended in the middle of an answer")
            data += part
        return data

    lines = until(b"\r\n\r\n").decode().lower().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines[1:] if line)
    return int(lines[0].split()[1]), receive(int(fields["content-length"]))


class TestAccepted:
    @pytest.mark.parametrize("encoding", ["identity", "gzip"])
    @pytest.mark.parametrize("kind", ["protobuf", "json"])
    def test_spans(self, base, sink, kind, encoding):
        """Protobuf and JSON, plain and gzipped, are stored before they are acknowledged; the body says success."""
        message = traces(span("s"), resource={RUN: "r1"})
        body = json.dumps(as_json(message)).encode() if kind == "json" else raw(message)
        media = "application/json; charset=utf-8" if kind == "json" else "application/x-protobuf"
        body = gzip.compress(body) if encoding == "gzip" else body
        status, fields, answer = post(base, "/v1/traces", body, media, content_encoding=encoding)

        assert (200, b"{}" if kind == "json" else b"") == (status, answer)
        assert fields["content-type"] == media.partition(";")[0]
        assert sink.runs() == {"r1": ["s"]}
        assert f"http/{kind}" == sink.span("s")["protocol"]

    def test_every_signal(self, base, sink, receiver):
        """Logs are stored and metrics are counted."""
        assert post(base, "/v1/logs", raw(logs(record("e"), resource={RUN: "r1"})))[0] == 200
        assert post(base, "/v1/metrics", raw(metrics(3, resource={RUN: "r1"})))[0] == 200
        assert post_json(base, "/v1/logs", as_json(logs(record("f"), resource={RUN: "r1"})))[0] == 200
        assert sink.runs() == {"r1": ["e", "f"]}
        assert receiver.counters("r1").accepted == 5

    def test_run_of_header_and_path(self, base, sink):
        """The run may be named by header or path; a run id in a path may hold slashes and escapes."""
        post(base, "/v1/traces", raw(traces(span("h", trace="1"))), x_clawtrace_run_id="r1")
        post(base, "/run/r2/v1/traces", raw(traces(span("p", trace="2"))))
        post(base, "/run/a/b/v1/traces/", raw(traces(span("q", trace="3"))))
        post(base, f"/run/{quote('ä b/c', safe='')}/v1/traces", raw(traces(span("u", trace="4"))))

        assert sink.runs() == {"r1": ["h"], "r2": ["p"], "a/b": ["q"], "ä b/c": ["u"]}

    def test_what_scopes_were_called_before(self, base, sink):
        """`instrumentationLibrarySpans` of OTLP up to 0.19 are read."""
        document = as_json(traces(span("s"), resource={RUN: "r1"}))
        (group,) = document["resourceSpans"]
        (scope,) = group.pop("scopeSpans")
        group["instrumentationLibrarySpans"] = [{"instrumentationLibrary": scope["scope"], "spans": scope["spans"]}]

        assert post_json(base, "/v1/traces", document)[::2] == (200, {})
        assert (sink.runs(), sink.span("s")["scope"]) == ({"r1": ["s"]}, "test")

    def test_empty_request(self, base):
        """An empty request is a success."""
        assert post(base, "/v1/traces", b"")[::2] == (200, b"")
        assert post_json(base, "/v1/traces", {})[::2] == (200, {})
        assert post_json(base, "/v1/traces", {"resourceSpans": []})[::2] == (200, {})

    def test_partial_success(self, base, sink):
        """Bad ids are rejected span by span and reported by count and reason; the rest is stored."""
        bad = span("bad")
        bad.span_id = b""
        message = traces(bad, span("fine"), resource={RUN: "r1"})
        status, _, answer = post(base, "/v1/traces", raw(message))
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
        _, _, document = post_json(base, "/v1/traces", as_json(traces(bad, resource={RUN: "r1"})))

        assert (status, partial.rejected_spans, partial.error_message) == (200, 1, "1 rejected: the span id is missing")
        assert {"rejectedSpans": "1", "errorMessage": partial.error_message} == document["partialSuccess"]
        assert sink.runs() == {"r1": ["fine"]}

    def test_chunked_and_pipelined(self, base, sink):
        """Chunked bodies, ``expect: 100-continue`` and pipelined requests are HTTP/1.1 like any other."""
        body = raw(traces(span("one", trace="1"), resource={RUN: "r1"}))
        other = raw(traces(span("two", trace="2"), resource={RUN: "r1"}))
        with connect(base) as connection:
            chunked = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
            connection.sendall(head(None, extra="transfer-encoding: chunked\r\n") + chunked + head(len(other)) + other)

            assert read_answer(connection) == (200, b"")
            assert read_answer(connection) == (200, b"")
            connection.sendall(head(len(body), extra="expect: 100-continue\r\n"))
            assert connection.recv(1024).startswith(b"HTTP/1.1 100")
        assert sink.runs() == {"r1": ["one", "two"]}

    @pytest.mark.parametrize("framing", ["length", "chunked"])
    def test_an_offer_of_http_2(self, base, sink, framing):
        """A request that offers HTTP/2 is read as HTTP/1.1, with its body, wherever it is cut; more follow it.

        Java's own client offers it in each request to a plain ``http`` address.
        """
        offer = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"

        def request(name: str, extra: str) -> bytes:
            body = raw(traces(span(name, trace=name.encode().hex()), resource={RUN: "r1"}))
            if framing == "length":
                return head(len(body), extra=extra) + body
            return head(None, extra=f"{extra}transfer-encoding: chunked\r\n") + b"%x\r\n%s\r\n0\r\n\r\n" % (
                len(body),
                body,
            )

        first, second, third = request("one", offer), request("two", ""), request("three", offer)
        end = first.index(b"\r\n\r\n") + 4
        with connect(base) as connection:
            for part in (
                first[: end - 1],
                first[end - 1 : end],
                first[end : end + 9],
                first[end + 9 :] + second + third,
            ):
                connection.sendall(part)

            assert [read_answer(connection) for _ in range(3)] == [(200, b"")] * 3
        assert sink.runs() == {"r1": ["one", "two", "three"]}

    def test_headers_in_two_parts_before_a_large_body(self, base, sink, receiver):
        """What bounds headers does not count a body that is read together with their end."""
        body = raw(traces(span("s", attributes={"a": "x" * 90_000}), resource={RUN: "r1"}))
        other = head(len(body)) + body
        sent = threading.Event()
        with connect(base) as connection:
            connection.sendall(head(0) + other[:20])
            answers = [read_answer(connection)]  # so that the part behind the first request was read as well
            receiver._ports._loop.call_soon_threadsafe(sent.wait)
            connection.sendall(other[20:])
            sent.set()
            answers.append(read_answer(connection))

        assert answers == [(200, b"")] * 2
        assert sink.runs() == {"r1": ["s"]}

    def test_answers_are_sent_without_delay(self, base, receiver):
        """No part of an answer waits for the sender's delayed acknowledgement, which takes 40 ms on Linux."""
        with socket.create_connection((urlsplit(base).hostname, urlsplit(base).port)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            connection.recv(1)
            (protocol,) = receiver._ports._site.visitors
            sent_from = protocol.transport.get_extra_info("socket")

            assert sent_from.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    def test_a_sender_that_closes_at_once(self, base, sink, receiver):
        """A request that came whole is stored although its sender half-closed, or died, before the answer."""
        receiver.open_run("r1")
        for place, linger in enumerate((None, struct.pack("ii", 1, 0)), 1):
            body = raw(traces(span(f"s{place}", trace=str(place)), resource={RUN: "r1"}))
            sink.gate.clear()
            with connect(base) as connection:
                connection.sendall(head(len(body)) + body)
                if linger is None:
                    connection.shutdown(socket.SHUT_WR)
                    sink.gate.set()
                    assert read_answer(connection)[0] == 200
                else:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            sink.gate.set()
            assert receiver.rest("r1", 30)
        assert sink.runs() == {"r1": ["s1", "s2"]}


class TestRefused:
    def status(self, body: bytes, kind: str = "protobuf") -> tuple[int, str]:
        if kind == "json":
            document = json.loads(body)
            return document["code"], document["message"]
        from google.rpc.status_pb2 import Status

        detail = Status.FromString(body)
        return detail.code, detail.message

    @pytest.mark.parametrize(
        ("body", "media", "words"),
        [
            (b"\xff\xff\xff\xff", "application/x-protobuf", "not a protobuf message"),
            (raw(GOOD)[:-7], "application/x-protobuf", "truncated"),
            (b"{nonsense", "application/json", "not JSON"),
            (b'{"resourceSpans": [1]}', "application/json", "`resourceSpans` is not a list of objects"),
            (b'{"hello": 1}', "application/json", "contains none of"),
            (b'{"data": [{"traceID": "a1", "spans": []}]}', "application/json", "this is Jaeger's JSON, not OTLP"),
            (b"[" * 100_000, "application/json", "nested too deeply"),
            (json.dumps(as_json(logs(record("e")))).encode(), "application/json", "contains logs, not traces"),
            (raw(logs(record("e", body="text"))), "application/x-protobuf", "contains logs, not traces"),
            (raw(metrics()), "application/x-protobuf", "contains metrics, not traces"),
        ],
    )
    def test_what_will_never_be_accepted(self, base, receiver, body, media, words):
        """Garbage and bodies of another signal get 400 with a Status in the request's encoding that says why."""
        status, fields, answer = post(base, "/v1/traces", body, media)
        code, message = self.status(answer, media.partition("/")[2])

        assert (400, 3, media) == (status, code, fields["content-type"])
        assert words in message
        assert message in receiver.counters().reasons

    @pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs", "/v1/metrics"])
    def test_several_signals_in_one_body(self, base, receiver, sink, path):
        """Spans and log records in one JSON body are 400 wherever they go: none of them is dropped as an unknown field."""
        both = as_json(GOOD) | as_json(logs(record("e")))
        status, _, answer = post(base, path, json.dumps(both).encode(), "application/json")

        assert status == 400
        assert b"a request has one signal" in answer or b"; send it to" in answer
        assert receiver.counters().reasons.total() == 1
        assert sink.runs() == {}

    def test_an_empty_second_signal(self, base, sink):
        """A list of another signal that holds nothing loses nothing."""
        body = json.dumps(as_json(GOOD) | {"resourceLogs": []}).encode()

        assert post(base, "/v1/traces", body, "application/json")[0] == 200
        assert len(sink.runs()) == 1

    @pytest.mark.parametrize("message", [GOOD, metrics()])
    def test_other_signals_on_the_logs_path(self, base, message):
        """Spans and metrics sent to `/v1/logs` are not taken for empty log records."""
        status, _, answer = post(base, "/v1/logs", raw(message))

        assert status == 400
        assert b"not logs; send it to" in answer

    def test_spans_on_the_metrics_path(self, base):
        """Spans sent to `/v1/metrics` are not counted as nothing."""
        assert post(base, "/v1/metrics", raw(GOOD))[0] == 400

    @pytest.mark.parametrize(
        ("path", "words"),
        [
            ("/v1/traces/v1/traces", "contains `/v1/…` twice: set `OTEL_EXPORTER_OTLP_ENDPOINT` to the address alone"),
            ("/run/r1/v1/traces/v1/logs", "contains `/v1/…` twice"),
            ("/", "the exporter must use the signal's path"),
            ("/v2/traces", "is unknown; this receiver has `/v1/traces`"),
            ("/v1/profiles", "is unknown"),
        ],
    )
    def test_unknown_paths_are_explained(self, base, path, words):
        """404 says what was meant."""
        status, _, document = post_json(base, path, {})

        assert (status, document["code"]) == (404, 5)
        assert words in document["message"]

    def test_methods(self, base):
        """Other methods get 405 and the one that is allowed."""
        status, fields, _ = post(base, "/v1/traces", b"", _method="GET")

        assert (status, fields["allow"]) == (405, "POST")

    @pytest.mark.parametrize(
        ("media", "encoding", "words"),
        [
            ("text/plain", "identity", b"`content-type` is 'text/plain'"),
            (None, "identity", b"`content-type` is missing"),
            ("application/x-protobuf", "br", b"`content-encoding` is 'br'"),
        ],
    )
    def test_unsupported_media(self, base, media, encoding, words):
        """415 names what came and what is read."""
        status, _, answer = post(base, "/v1/traces", raw(GOOD), media, content_encoding=encoding)

        assert status == 415
        assert words in answer

    @pytest.mark.parametrize("body", [b"no gzip", PACKED[:-9], PACKED + b"x"], ids=["none", "truncated", "followed"])
    def test_broken_gzip(self, base, body):
        """Garbage, a truncated stream and garbage behind a stream are 400."""
        status, _, answer = post(base, "/v1/traces", body, content_encoding="gzip")

        assert status == 400
        assert b"gzip" in answer

    def test_gzip_of_several_members(self, base, sink):
        """A gzip stream may have several members."""
        body = raw(traces(span("s"), resource={RUN: "r1"}))

        assert (
            post(base, "/v1/traces", gzip.compress(body[:9]) + gzip.compress(body[9:]), content_encoding="gzip")[0]
            == 200
        )
        assert sink.runs() == {"r1": ["s"]}

    def test_a_request_without_a_length(self, base, receiver):
        """A POST without a length has no body in HTTP: what follows it would be lost behind a success."""
        receiver.open_run("r1")
        with connect(base) as connection:
            connection.sendall(head(None, path="/run/r1/v1/traces", extra="connection: close\r\n") + raw(GOOD))
            status, answer = read_answer(connection)

        assert status == 411
        assert b"neither `content-length` nor" in answer
        assert receiver.counters("r1").refused == 1

    @pytest.mark.parametrize(
        "junk", [b"\x00\x01garbage\r\n\r\n", b"GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"]
    )
    def test_nothing_is_logged(self, base, caplog, junk):
        """What is answered and counted is not reported a second time, nor with advice to install something."""
        with connect(base) as connection:
            connection.sendall(junk)

            assert read_answer(connection)[0] in (400, 404)
        assert caplog.text == ""

    @pytest.mark.parametrize(
        ("target", "answered", "words"),
        [
            ("http://127.0.0.1:4318/v1/traces?a=b", 200, b""),
            ("//host/v1/traces", 404, b"the path '//host/v1/traces' is unknown"),
            ("*", 404, b"the path '*' is unknown"),
            ("http://[/v1/traces", 200, b""),
        ],
    )
    def test_forms_of_a_target(self, base, target, answered, words):
        """The whole address, as for a proxy, means its path; two slashes begin no address."""
        with connect(base) as connection:
            connection.sendall(head(0, path=target))
            status, answer = read_answer(connection)

        assert status == answered
        assert words in answer

    def test_a_request_that_names_no_host(self, base):
        """HTTP/1.1 asks for the header, and the answer says so."""
        with connect(base) as connection:
            connection.sendall(b"POST /v1/traces HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
            status, answer = read_answer(connection)

        assert (status, b"Host" in answer) == (400, True)

    def test_header_junk(self, base):
        """Bytes that are no HTTP, TLS where there is none, and endless headers get an answer and a closed connection."""
        for sent, words in (
            (b"\x00\x01\x02garbage\r\n\r\n", b"not an HTTP/1.1 request"),
            (bytes.fromhex("1603010200010001fc0303") + bytes(500), b"this receiver has no TLS"),
            (b"POST /v1/traces HTTP/1.1\r\n" + b"x-a: b\r\n" * 200_000, b"longer than 65536 bytes"),
        ):
            with connect(base) as connection:
                try:
                    connection.sendall(sent)
                    status, answer = read_answer(connection)
                except ConnectionError:
                    assert words.startswith(b"longer")  # closed while it was still sending
                    continue

            assert status == 400
            assert words in answer


class TestLimits:
    @pytest.fixture
    def sink(self) -> MemorySink:
        return MemorySink()

    @pytest.fixture
    def receiver(self, sink):
        settings = ReceiverSettings(max_request_bytes=100_000, queue_bytes=150_000, body_timeout_s=0.2)
        with Receiver(sink, settings, environ={}) as running:
            yield running
        sink.gate.set()

    def test_too_large(self, base, receiver):
        """Bodies over the limit get 413, with and without a length; the run cannot claim to be complete."""
        receiver.open_run("r1")
        large = raw(traces(span("s", attributes={"a": "x" * 200_000})))
        status, _, answer = post(base, "/v1/traces", large, x_clawtrace_run_id="r1")
        with connect(base) as connection:
            fields = "transfer-encoding: chunked\r\nx-clawtrace-run-id: r1\r\n"
            connection.sendall(head(None, extra=fields) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(large), large))

            assert read_answer(connection)[0] == 413
        assert status == 413
        assert b"at most 100000 are accepted" in answer
        assert receiver.counters("r1").refused == 2

    def test_gzip_bomb(self, base):
        """A bomb is cut at the limit, not unpacked: 50 MB of zeros from 50 kB."""
        status, _, answer = post(base, "/v1/traces", gzip.compress(bytes(50_000_000)), content_encoding="gzip")

        assert status == 413
        assert b"(decompressed)" in answer

    def test_pressure(self, base, sink, receiver):
        """At the byte bound requests are turned away with 503, Retry-After and RetryInfo; later ones are taken."""
        body = raw(traces(span("s", attributes={"a": "x" * 80_000}), resource={RUN: "r1"}))
        other = json.dumps(as_json(traces(span("t", trace="2", attributes={"a": "x" * 80_000})))).encode()
        sink.gate.clear()
        first: list[int] = []
        thread = threading.Thread(target=lambda: first.append(post(base, "/v1/traces", body)[0]))
        thread.start()
        sink.entered.wait()
        status, fields, answer = post(base, "/run/r2/v1/traces", other, "application/json")
        sink.gate.set()
        thread.join()

        assert first == [200]
        assert (status, fields["retry-after"]) == (503, "1")
        assert json.loads(answer)["details"][0]["retryDelay"] == "1s"
        assert receiver.counters("r2").refused == 1
        assert post(base, "/run/r2/v1/traces", other, "application/json")[0] == 200
        assert sink.refused("r2") == 1

    def test_a_body_that_stands_still(self, base, receiver):
        """A body of which nothing comes for too long gets 408 and frees what it held."""
        receiver.open_run("r1")
        with connect(base) as connection:
            connection.sendall(head(5_000, path="/run/r1/v1/traces") + b"x" * 100)

            assert read_answer(connection)[0] == 408
        assert receiver.counters("r1").refused == 1

    def test_headers_that_stand_still(self, base, receiver):
        """Headers that do not end in time are given up: the wait for the end of a run does not hang on them."""
        receiver.open_run("r1")
        with connect(base) as connection:
            connection.sendall(head(5)[:-4])
            status, answer = read_answer(connection)

            assert (status, answer) == (400, b"the request's headers did not end within 0.2 s")
            assert receiver.rest("r1", 30)

    def test_a_connection_that_ends_in_a_body(self, base, receiver):
        """A request that was cut short is recorded: its run cannot claim to be complete."""
        receiver.open_run("r1")
        with connect(base) as connection:
            connection.sendall(head(5_000) + b"x" * 100)
        assert receiver.rest("r1", 30)

        assert receiver.counters("r1").refused == 1
        assert receiver.counters("r1").reasons == {"the connection was closed in the middle of a request": 1}


class TestToken:
    @pytest.fixture
    def receiver(self, sink):
        with Receiver(sink, ReceiverSettings(token="s3cret"), environ={}) as running:
            yield running

    @pytest.fixture(autouse=True)
    def still_alive(self):
        """Not asked here: the good request of this file has no token."""

    def test_token(self, base, receiver):
        """Without the token there is 401; with it, in either header, 200."""
        body = raw(GOOD)

        assert post(base, "/v1/traces", body)[0] == 401
        assert post(base, "/v1/traces", body, authorization="Bearer wrong")[0] == 401
        assert post(base, "/v1/traces", body, authorization="bearer s3cret")[0] == 200
        assert post(base, "/v1/traces", body, x_clawtrace_token="s3cret")[0] == 200
        assert sum(count for reason, count in receiver.counters().reasons.items() if "token" in reason) == 2

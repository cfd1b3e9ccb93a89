"""Agents that clawtrace starts and whose spans come through a Collector or a proxy (span-model.md §3).

The proxy here is small and does what a Collector does to a trace: it answers the agent at once, drops the request's path and
headers, holds what names `delete_all`, and sends it later. Silence is shortened; holding takes longer than the silence
that closes a run whose own processes export.
"""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from live_suite import NOT_DELETED, Suite, only

from clawtrace.model.verdict import Status
from clawtrace.session import closing
from free_port import free_port

pytestmark = pytest.mark.full

HELD_SECONDS = 1.0
HELD = b"delete_all"


class Proxy:
    """Forwards OTLP/HTTP to a receiver, each request on its way in a thread.

    Args:
        receiver: port of the receiver.
        keeps: whether the connection to the receiver stays open, or each request has one of its own.
    """

    def __init__(self, receiver: int, *, keeps: bool) -> None:
        self._receiver, self._keeps = receiver, keeps
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._timers: list[threading.Timer] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                proxy.take(body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, body: bytes) -> None:
        """Send a request on, now or later."""
        if HELD not in body:
            self._send(body)
            return
        timer = threading.Timer(HELD_SECONDS, self._send, [body])
        self._timers.append(timer)
        timer.start()

    def _send(self, body: bytes) -> None:
        with self._lock:
            link = self._connection or http.client.HTTPConnection("127.0.0.1", self._receiver)
            try:
                link.request("POST", "/v1/traces", body, {"content-type": "application/x-protobuf"})
                link.getresponse().read()
            except OSError:  # the receiver is gone: the verdict was given without these spans
                return
            if self._keeps:
                self._connection = link
            else:
                link.close()

    def end(self) -> None:
        """Send nothing any more."""
        for timer in self._timers:
            timer.cancel()
            timer.join()
        self._server.shutdown()
        self._server.server_close()
        if self._connection is not None:
            self._connection.close()


@pytest.fixture
def port(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> int:
    """A receiver's port that a Collector can be configured with, and waits that a test has time for."""
    monkeypatch.setattr(closing, "STARTED_MS", 200)
    monkeypatch.setattr(closing, "RUNNING_MS", 2_500)
    port = free_port()
    suite.project(f"receiver: {{http_port: {port}}}\n")
    return port


@pytest.fixture(params=[True, False], ids=["kept connection", "a connection for each request"])
def proxy(request: pytest.FixtureRequest, port: int):
    found = Proxy(port, keeps=request.param)
    yield found
    found.end()


def through(proxy: Proxy, how: str) -> str:
    """The command of an agent that exports to the proxy."""
    return f"OTEL_EXPORTER_OTLP_ENDPOINT={proxy.address} $AGENT {how}"


HTTP = "  telemetry: http/protobuf\n"


def said(found) -> bool:
    """Whether the result says that something stands between agent and receiver."""
    return closing.FORWARDED in found.diagnostics


class TestHeldSpans:
    """What is held longer than the agent lives is no proof of absence."""

    def test_a_whole_trace(self, suite, proxy):
        """The second trace of the agent, with the forbidden tool, leaves no sign in the first."""
        found = suite.judge(through(proxy, "late_span read delete_all"), NOT_DELETED, HTTP)

        assert (found.status, found.closed_by) == (Status.FAIL, "settled")
        assert said(found)

    @pytest.mark.parametrize("agent", ["", "  agent: started\n"], ids=["found out", "said"])
    def test_everything(self, suite, proxy, agent):
        """Nothing at all has come when the agent exits."""
        found = suite.judge(through(proxy, "flush delete_all"), NOT_DELETED, HTTP + agent)

        assert (found.status, found.closed_by) == (Status.FAIL, "settled")

    def test_the_next_run_on_the_same_connection(self, suite, proxy):
        """Several runs come over one connection."""
        suite.case("a", through(proxy, "flush read"), NOT_DELETED, HTTP)
        suite.case("b", through(proxy, "late_span read delete_all"), NOT_DELETED, HTTP)
        found = suite.run()

        assert {one: result.status for one, result in found.items()} == {"a": Status.PASS, "b": Status.FAIL}
        assert all(map(said, found.values()))


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
@pytest.mark.parametrize("address", ["", "OTEL_EXPORTER_OTLP_HEADERS= OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{}"])
def test_an_agent_that_exports_itself_is_closed_by_its_exit(suite, port, protocol, address):
    """A port that others know changes nothing, nor does an address that is written into the agent's code."""
    found = suite.judge(f"{address.format(port)} $AGENT flush read", only("read"), f"  telemetry: {protocol}\n")

    assert (found.status, found.closed_by, found.complete) == (Status.PASS, "exit", True)
    assert not said(found)

"""What the service says of itself: metrics, verdicts as events, and a feed of what happens."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

import pytest
from exported import export
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from served import Served

from clawtrace.config.projects.project_file import load_project
from clawtrace.config.projects.session_settings import endpoint_of
from clawtrace.errors import ReceiverError
from clawtrace.receiver.limits import TeeSettings
from clawtrace.session.session import Session
from clawtrace.sidecar.client import Client
from clawtrace.sidecar.feed import Feed
from clawtrace.sidecar.serving import Sends, Service

pytestmark = pytest.mark.full

CHECKS = "assert:\n- tool_was_called: search\n- tool_not_invoked: delete_all\n- token_budget: {max_total_tokens: 5}\n"
MESSAGES = {"logs": ExportLogsServiceRequest, "metrics": ExportMetricsServiceRequest}


class Backend:
    """An OTLP endpoint that keeps what comes."""

    def __init__(self) -> None:
        received = self.received = SimpleQueue[Any]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                received.put((MESSAGES[self.path.rpartition("/")[2]].FromString(body), self.headers["x-key"]))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.settings = TeeSettings(f"http://127.0.0.1:{self._server.server_port}", (("x-key", "k"),))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def backend() -> Iterator[Backend]:
    one = Backend()
    yield one
    one.close()


def serve(session: Session, sends: Sends) -> Served:
    service = Service(session, token="control", sends=sends)
    address = service.start().http
    return Served(address, "control", Client.at(address, "control"), service, session)


def attributes(of: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.double_value for one in of.attributes}


def get(served: Served, path: str, token: str = "control") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(served.http).netloc, timeout=30)
    connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
    return connection.getresponse()


@pytest.mark.smoke
def test_verdicts_are_events_on_the_trace_that_was_judged(tmp_path: Path, backend: Backend) -> None:
    """On the agent's span; a pass scores 1, a fail 0, and what is undecided has no score."""
    with Session.open(tmp_path / "spans.duckdb") as session:
        served = serve(session, Sends(verdicts=backend.settings))
        export(f"{served.http}/run/r", "search", "delete_all")
        served.client.end_run("r", exit_code=0)
        results = served.client.evaluate(CHECKS)
        (agent,) = session.query("SELECT trace_id, span_id FROM spans WHERE kind = 'agent'").rows
        served.service.drain()
    message, key = backend.received.get(timeout=30)
    records = message.resource_logs[0].scope_logs[0].log_records
    sent = [attributes(record) for record in records]

    assert key == "k"
    assert {(one.event_name, one.trace_id.hex(), one.span_id.hex()) for one in records} == {
        ("gen_ai.evaluation.result", *agent)
    }
    assert [
        (one["gen_ai.evaluation.score.label"], "gen_ai.evaluation.score.value" in one, one["clawtrace.run_id"])
        for one in sent
    ] == [("pass", True, "r"), ("fail", True, "r"), ("inconclusive", False, "r")]
    assert [one.get("gen_ai.evaluation.score.value") for one in sent] == [1.0, 0.0, None]
    assert [one["gen_ai.evaluation.explanation"] for one in sent] == [
        one["message"] for one in results["cases"][0]["runs"][0]["assertions"]
    ]


def test_a_run_without_spans_has_no_trace_to_send_to(tmp_path: Path, backend: Backend) -> None:
    with Session.open(tmp_path / "spans.duckdb") as session:
        served = serve(session, Sends(verdicts=backend.settings))
        served.client.begin_run(run_id="it's empty")
        served.client.end_run("it's empty", exit_code=0)
        served.client.evaluate(CHECKS)
        served.service.drain()

    assert backend.received.empty()


def test_its_own_metrics(tmp_path: Path, backend: Backend) -> None:
    """The same numbers for Prometheus and over OTLP."""
    with Session.open(tmp_path / "spans.duckdb") as session:
        served = serve(session, Sends(metrics=backend.settings))
        export(f"{served.http}/run/r", "search")
        served.client.end_run("r", exit_code=0)
        served.client.evaluate(CHECKS)
        scraped = get(served, "/metrics").read().decode().splitlines()
        refused = get(served, "/metrics", token="wrong").status
        served.service.drain()
    message, _ = backend.received.get(timeout=30)
    metrics = {one.name: one for one in message.resource_metrics[0].scope_metrics[0].metrics}
    accepted = next(
        point
        for point in metrics["clawtrace.received.items"].sum.data_points
        if attributes(point)["outcome"] == "accepted"
    )

    assert 'clawtrace_received_items_total{outcome="accepted"} 2' in scraped
    assert 'clawtrace_verdicts_total{status="pass"} 2' in scraped
    assert "clawtrace_runs 1" in scraped
    assert "# TYPE clawtrace_queue_bytes gauge" in scraped
    assert refused == 401
    assert accepted.as_int == 2
    assert metrics["clawtrace.runs"].gauge.data_points[0].as_int == 1


def test_it_does_not_send_to_itself(tmp_path: Path) -> None:
    """Events that come back would be records of the run that was judged."""
    with Session.open(tmp_path / "spans.duckdb") as session:
        port = urlsplit(session.listen().http).port
        own = TeeSettings(f"http://127.0.0.1:{port}")
        with pytest.raises(ReceiverError, match=r"`serve\.verdicts` .* is this receiver itself"):
            Service(session, sends=Sends(verdicts=own)).start()


def test_the_project_says_where_to(tmp_path: Path) -> None:
    (tmp_path / "clawtrace.yaml").write_text(
        "serve: {verdicts: {endpoint: 'http://b:4318', headers: {k: v}}, metrics: {interval_seconds: 5}}\n"
    )
    said = load_project(tmp_path, {}).config.serve

    assert endpoint_of(said.verdicts) == TeeSettings("http://b:4318", (("k", "v"),))
    assert (endpoint_of(said.metrics), said.metrics.interval_seconds) == (None, 5.0)


class TestFeed:
    def test_what_happens_is_reported_as_it_happens(self, served: Served) -> None:
        """A follower has each event while the connection is open, and its end when the service stops."""
        answer = get(served, "/clawtrace/v1/events")
        events = (one for one in map(json.loads, iter(answer.readline, b"")) if one["event"] != "received")
        served.client.begin_run(run_id="r")
        begun = next(events)
        export(f"{served.http}/run/r", "search")
        served.client.end_run("r", exit_code=0)
        closed = next(events)
        served.client.evaluate(CHECKS)
        verdicts = [next(events) for _ in range(3)]
        served.service.drain()

        assert answer.getheader("content-type") == "application/x-ndjson"
        assert (begun["seq"], begun["event"], begun["run_id"]) == (1, "run.begun", "r")
        assert (closed["event"], closed["complete"], closed["closed_by"]) == ("run.closed", True, "exit")
        assert [(one["event"], one["status"]) for one in verdicts] == [
            ("verdict", "pass"),
            ("verdict", "pass"),
            ("verdict", "inconclusive"),
        ]
        assert list(events) == []

    def test_head_asks_for_no_events(self, served: Served) -> None:
        """Its answer ends with the headers, and the connection closes."""
        with socket.create_connection(urlsplit(served.http).netloc.split(":"), timeout=30) as connection:
            host = urlsplit(served.http).netloc
            connection.sendall(
                f"HEAD /clawtrace/v1/events HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer control\r\n"
                "connection: close\r\n\r\n".encode()
            )
            said = b"".join(iter(lambda: connection.recv(4096), b""))

        head, body = said.split(b"\r\n\r\n", 1)
        assert b" 200 " not in head.splitlines()[0]
        assert body == b""

    def test_a_client_that_was_away_gets_what_it_missed(self, served: Served) -> None:
        feed = served.service._feed
        for number in range(1_005):
            feed.put("run.begun", run_id=str(number))
        lines = get(served, "/clawtrace/v1/events?after=2&follow=false").read().splitlines()
        rest = get(served, "/clawtrace/v1/events?after=1004&follow=false").read().splitlines()

        assert json.loads(lines[0]) == {"event": "lost", "events": 3}
        assert [json.loads(line)["seq"] for line in lines[1:]] == list(range(6, 1_006))
        assert [json.loads(line)["seq"] for line in rest] == [1_005]

    def test_a_client_that_goes_before_the_first_event_keeps_no_place(self) -> None:
        """Its connection broke when the answer began; more of them than may follow leave room for the next."""
        feed = Feed()

        async def come_and_go() -> bool:
            for _ in range(20):
                following = feed.follow(0, waits=True)
                assert following is not None
                await following.aclose()
            return feed.follow(0, waits=False) is not None

        assert asyncio.run(come_and_go())

    def test_not_everybody_may_follow(self, served: Served) -> None:
        """The token is needed, and followers are few; one that goes makes room."""
        followers = [get(served, "/clawtrace/v1/events") for _ in range(16)]

        assert get(served, "/clawtrace/v1/events", token="wrong").status == 401
        assert get(served, "/clawtrace/v1/events").status == 503
        served.service._feed.put("run.begun", run_id="r")
        assert all(one.readline() for one in followers)


def test_alive_and_ready_are_two_questions(served: Served) -> None:
    assert get(served, "/clawtrace/v1/live", token="").status == 200
    assert get(served, "/clawtrace/v1/health", token="").status == 200
    served.session._control.stop()
    assert get(served, "/clawtrace/v1/live", token="").status == 200
    assert get(served, "/clawtrace/v1/health", token="").status == 503

"""Agents that export to the official OpenTelemetry Collector, with the configurations of `collector-config/`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from live_suite import NOT_DELETED, Suite, only

from clawtrace.model.verdict import Status
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session import closing
from clawtrace.session.session import Session
from free_port import free_port
from otelcol import CONFIGS, PROGRAM, Collector

pytestmark = [pytest.mark.full, pytest.mark.needs("otelcol")]

VALUES = {
    "CLAWTRACE_ENDPOINT": "http://127.0.0.1:1",
    "BACKEND_ENDPOINT": "http://127.0.0.1:1",
    "CLICKHOUSE_ENDPOINT": "http://127.0.0.1:1",
    "TRACES_FILE": "traces.jsonl",
    "QUEUE_FOLDER": "queue",
}
SHORT = "  telemetry: http/protobuf\n  settle_ms: 3000\n"


@pytest.fixture
def port(suite: Suite) -> int:
    """The receiver's port, which the Collector is configured with."""
    port = free_port()
    suite.project(f"receiver: {{http_port: {port}}}\n")
    return port


@pytest.fixture
def start(tmp_path: Path):
    """Starts Collectors, and ends them."""
    running: list[Collector] = []

    def begin(config: str, **values: str) -> Collector:
        running.append(Collector(config, tmp_path, **values))
        return running[-1]

    yield begin
    for one in running:
        one.kill()


def through(collector: Collector, how: str) -> str:
    return f"OTEL_EXPORTER_OTLP_ENDPOINT={collector.address} $AGENT {how}"


@pytest.mark.parametrize(
    "config", sorted(path.stem for path in CONFIGS.glob("*.yaml") if "pipelines:" in path.read_text())
)
def test_the_collector_accepts(config, tmp_path):
    """Every configuration is valid for the version that the manifest names."""
    command = [PROGRAM, "validate", "--config", CONFIGS / f"{config}.yaml"]
    found = subprocess.run(command, env=os.environ | VALUES, cwd=tmp_path, capture_output=True, text=True)

    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("tools", ["read write", "read delete_all"])
def test_to_clawtrace(suite, port, start, tools):
    """The run has everything, and says that something stands between."""
    collector = start("to-clawtrace", CLAWTRACE_ENDPOINT=f"http://127.0.0.1:{port}")
    found = suite.judge(through(collector, f"late_span {tools}"), NOT_DELETED, SHORT)

    assert (found.status, found.closed_by, found.complete) == (
        Status.FAIL if "delete" in tools else Status.PASS,
        "settled",
        True,
    )
    assert found.spans == 4
    assert closing.FORWARDED in found.diagnostics


def test_runs_at_once(suite, port, start):
    """Runs that come over one connection do not mix."""
    collector = start("to-clawtrace", CLAWTRACE_ENDPOINT=f"http://127.0.0.1:{port}")
    for number in range(4):
        suite.case(f"c{number}", through(collector, f"flush t{number}"), only(f"t{number}"), SHORT)
    found = suite.run(concurrency=4)

    assert {(one.status, one.spans) for one in found.values()} == {(Status.PASS, 2)}


def test_fan_out(suite, port, start):
    """A backend that is away takes nothing from clawtrace; one that is there gets the same."""
    got: list[bytes] = []

    class Backend(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    backend = ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    threading.Thread(target=backend.serve_forever, daemon=True).start()
    values = {"CLAWTRACE_ENDPOINT": f"http://127.0.0.1:{port}"}
    there = start("fan-out", BACKEND_ENDPOINT=f"http://127.0.0.1:{backend.server_port}", **values)
    away = start("fan-out", BACKEND_ENDPOINT="http://127.0.0.1:9", **values)
    suite.case("there", through(there, "flush read"), only("read"), SHORT)
    suite.case("away", through(away, "flush read"), only("read"), SHORT)
    found = suite.run()
    backend.shutdown()
    backend.server_close()

    assert {one.status for one in found.values()} == {Status.PASS}
    assert len(got) == 1


def test_to_a_file(tmp_path, start):
    """What the file exporter writes is read as a recording."""
    written = tmp_path / "traces.jsonl"
    collector = start("to-file", TRACES_FILE=str(written))
    agent = Path(__file__).parent / "sdk_agent.py"
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
    subprocess.run([sys.executable, agent, "flush", "read"], env=os.environ | settings, check=True)
    collector.stop()
    with Session.open() as session:
        session.load_recordings([written], Grouping("one", "r"))
        assert {node.name for node in session.tree("r")} == {"invoke_agent helper", "execute_tool read"}


def test_killed_while_it_holds_spans(suite, port, start):
    """A Collector that is killed loses what it holds: nothing has arrived, so nothing is passed."""
    wait = {"CLAWTRACE_ENDPOINT": f"http://127.0.0.1:{port}", "DECISION_WAIT": "60s"}
    collector = start("tail-sampling", **wait)
    found = suite.judge(
        f"{through(collector, 'flush delete_all')}; kill -9 {collector.process.pid}", NOT_DELETED, SHORT
    )

    assert (found.status, found.has_trace) == (Status.SKIP, False)


def test_tail_sampling_within_settle_ms(suite, port, start):
    """A decision that is made within `settle_ms` is waited for."""
    values = {"CLAWTRACE_ENDPOINT": f"http://127.0.0.1:{port}", "DECISION_WAIT": "2s", "OTHERS_PERCENT": "100"}
    collector = start("tail-sampling", **values)
    found = suite.judge(through(collector, "flush delete_all"), NOT_DELETED, SHORT.replace("3000", "6000"))

    assert (found.status, found.closed_by) == (Status.FAIL, "settled")

"""`clawtrace serve` and `eval` on a file system of their own that becomes full, or cannot be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from running import Running, clawtrace

from clawtrace._pb import message
from not_run import not_run

pytestmark = pytest.mark.full

_DISK_BYTES = 160 << 20
_FULL = "the disk is full. Make room on it; what was acknowledged is not lost."


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "none", str(folder)]
    if not hasattr(os, "geteuid") or os.geteuid() or subprocess.run(command, capture_output=True).returncode:
        not_run("tmpfs", "no file system can be mounted here (`mount -t tmpfs`, as root)")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Leave no byte; removing the file that is returned makes room."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4_096))
        except OSError:
            return filler


class Producer:
    """Sends spans of one run to a service, and remembers what was acknowledged."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.acknowledged = 0
        self._request = 0

    def send(self, spans: int, bytes_each: int = 2_000) -> int:
        """Send one request and return the status of the answer."""
        self._request += 1
        sent = ExportTraceServiceRequest()
        at = sent.resource_spans.add()
        at.resource.attributes.add(key="clawtrace.run_id").value.string_value = "r"
        scope = at.scope_spans.add()
        for number in range(spans):
            span = scope.spans.add(name="s", trace_id=bytes(15) + b"\1", start_time_unix_nano=1, end_time_unix_nano=2)
            span.span_id = (self._request * 10_000 + number).to_bytes(8, "big")
            span.attributes.add(key="noise").value.string_value = os.urandom(bytes_each // 2).hex()
        status, _ = self.ask("/v1/traces", sent.SerializeToString(), "application/x-protobuf")
        self.acknowledged += spans if status == 200 else 0
        return status

    def ask(self, path: str, body: bytes | None = None, kind: str = "application/json") -> tuple[int, Any]:
        """Return status and JSON of an answer."""
        fields = {"content-type": kind, "authorization": f"Bearer {self.running.said['token']}"}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(self.running.http + path, body, fields), timeout=60
            ) as answer:
                data, status = answer.read(), answer.status
        except HTTPError as error:
            data, status = error.read(), error.code
        return status, json.loads(data) if kind == "application/json" else None

    def counted(self) -> tuple[int, int]:
        """Return how many spans the service says it has, and how many different ones."""
        sql = "SELECT count(*), count(DISTINCT span_id) FROM spans"
        status, answer = self.ask("/clawtrace/v1/query", json.dumps({"ask": "query", "sql": sql}).encode())
        assert status == 200, answer
        return tuple(answer["rows"][0])


def health(channel: grpc.Channel) -> Iterator[int]:
    """Watch the health of a service."""
    answer = message("grpc.health.v1.HealthCheckResponse")
    watch = channel.unary_stream("/grpc.health.v1.Health/Watch", response_deserializer=answer.FromString)
    for one in watch(message("grpc.health.v1.HealthCheckRequest")().SerializeToString(), timeout=120):
        yield one.status


def fail_while_acknowledged_spans_wait(producer: Producer, disk: Path) -> Path:
    """The journal has spans when the disk becomes full; they cannot be moved into the tables."""
    producer.send(5)
    filler = fill(disk)
    assert producer.send(200) == 503
    return filler


def fail_in_a_checkpoint_between_requests(producer: Producer, disk: Path) -> Path:
    """The log is large enough to be moved when nothing comes, and nothing waits: DuckDB stops for good."""
    log = disk / "spans.duckdb.wal"
    while not log.exists() or log.stat().st_size < 17 << 20:
        producer.send(1_100)
    return fill(disk)


def fail_in_the_checkpoint_of_a_commit(producer: Producer, disk: Path) -> Path:
    """The log reaches the size at which DuckDB moves it itself: the commit is durable, and is answered with 503."""
    log = disk / "spans.duckdb.wal"
    while not log.exists() or log.stat().st_size < 61 << 20:
        producer.send(1_100)
    filler = fill(disk)
    os.truncate(filler, filler.stat().st_size - (8 << 20))
    while producer.send(1_100) == 200:
        pass
    return filler


@pytest.mark.parametrize(
    "fail",
    [
        fail_while_acknowledged_spans_wait,
        fail_in_a_checkpoint_between_requests,
        fail_in_the_checkpoint_of_a_commit,
    ],
)
def test_a_disk_that_is_full_and_has_room_again(tmp_path, disk, fail: Callable[[Producer, Path], Path]) -> None:
    """It is said once, the service is not ready and refuses, and goes on by itself with every acknowledged span, each once."""
    running = Running(tmp_path, "--store", str(disk / "spans.duckdb"))
    producer = Producer(running)
    assert producer.send(5) == 200
    assert producer.counted() == (5, 5)
    with grpc.insecure_channel(urlsplit(running.said["grpc"]).netloc) as channel:
        ready = health(channel)
        assert next(ready) == 1
        filler = fail(producer, disk)
        assert next(ready) == 2

        refused = [
            producer.ask("/clawtrace/v1/runs/r"),
            producer.ask("/clawtrace/v1/query", b'{"ask": "query", "sql": "SELECT count(*) FROM spans"}'),
        ]
        statuses = [producer.send(100), producer.ask("/clawtrace/v1/health")[0], producer.ask("/clawtrace/v1/live")[0]]
        listed = channel.unary_unary("/clawtrace.v1.ControlService/ListRuns")
        with pytest.raises(grpc.RpcError) as of_grpc:
            listed(b"", timeout=60, metadata=[("authorization", f"Bearer {running.said['token']}")])

        assert statuses == [503, 503, 200]
        for status, answer in refused:
            assert (status, answer["error"]) == (503, "StoreError"), answer
        assert of_grpc.value.code() is grpc.StatusCode.UNAVAILABLE

        filler.unlink()
        assert next(ready) == 1
    before = producer.acknowledged
    assert producer.send(7) == 200
    counted = producer.counted()
    code, said = running.end()

    assert counted[0] == counted[1]
    assert counted[0] in (before + 7, before + 7 + 1_100)  # what was durable and answered with 503
    assert code == 0
    full = f"cannot write to the store {str(disk / 'spans.duckdb')!r}: {_FULL}"
    assert said.splitlines() == [
        f"{full} Until then exporters are asked to send again, and questions are refused.",
        "the store can be written again",
        "asked to stop; storing what was received",
        "stopped",
    ]


def test_a_store_that_is_asked_on_a_full_disk(tmp_path, disk) -> None:
    """`eval` computes facts, which it cannot store: it says so, with exit code 4, and judges when there is room."""
    running = Running(tmp_path, "--store", str(disk / "spans.duckdb"))
    assert Producer(running).send(2_000) == 200
    running.end()
    (tmp_path / "checks.yaml").write_text("assert:\n- no_span_errors: true\n")
    command = ("eval", "--store", disk / "spans.duckdb", "--assertions", "checks.yaml")
    filler = fill(disk)
    full = running.clawtrace(*command)
    filler.unlink()
    after = running.clawtrace(*command)

    assert (full.returncode, full.stdout) == (4, "")
    assert full.stderr.endswith(f" the store {str(disk / 'spans.duckdb')!r}: {_FULL}\n")
    assert full.stderr.count("\n") == 1
    assert (after.returncode, after.stderr) == (3, ""), "these spans are of no known agent"
    assert "1 inconclusive" in after.stdout


def test_a_disk_that_cannot_be_written(tmp_path, disk) -> None:
    """A store on it is not served and not judged: what is said names it and what to do, with exit code 4."""
    running = Running(tmp_path, "--store", str(disk / "spans.duckdb"))
    assert Producer(running).send(5) == 200
    running.end()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    commands = [("serve", "--store"), ("inspect", "--store")]
    said = [clawtrace(tmp_path, *command, disk / "spans.duckdb") for command in commands]

    words = "the file system is read-only. Make it writable, or name another store with --store, such as a copy."
    expected = f"error: cannot open the store {str(disk / 'spans.duckdb')!r}: {words}\n"
    assert [(one.returncode, one.stderr) for one in said] == [(4, expected)] * 2


AGENT = """
from pathlib import Path
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
with open("filler", "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(timeout=1)))
with provider.get_tracer("test").start_as_current_span("work", attributes={"noise": "x" * 100_000}):
    pass
"""


def test_a_campaign_whose_disk_becomes_full(disk) -> None:
    """The agent of a suite fills the disk of the project: the store's line and one of the file that came last say what cannot be written, with exit code 4."""
    (disk / "agent.py").write_text(AGENT)
    clawtrace(disk, "init", "--command", f"{sys.executable} agent.py", "--message", "hello", "--no-trial", "--yes")
    judged = clawtrace(disk, "eval", "--suite", "first")

    assert judged.returncode == 4, judged.stderr
    about_store, *_others, about_file = judged.stderr.splitlines()
    assert "Traceback" not in judged.stderr
    assert _FULL in about_store
    assert about_file.startswith("error: ")
    assert "No space left on device." in about_file

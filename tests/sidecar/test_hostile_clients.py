"""`clawtrace serve` beside clients that send garbage, hold connections open, or flood it with frames of HTTP/2."""

from __future__ import annotations

import random
import resource
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from running import Running

pytestmark = [pytest.mark.full, pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")]

_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_CONNECTIONS = 200
_FLOOD_SECONDS = 2.0


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    service = Running(tmp_path, "--store", "spans.duckdb")
    yield service
    if service.process.poll() is None:
        service.process.kill()
        service.process.communicate()


def request(producer: int, number: int) -> bytes:
    """One span of a producer's own run."""
    sent = ExportTraceServiceRequest()
    at = sent.resource_spans.add()
    at.resource.attributes.add(key="clawtrace.run_id").value.string_value = f"p{producer}"
    span = at.scope_spans.add().spans.add(name="s", start_time_unix_nano=1, end_time_unix_nano=2)
    span.trace_id, span.span_id = (producer + 1).to_bytes(16, "big"), (number + 1).to_bytes(8, "big")
    return sent.SerializeToString()


def export(running: Running, producer: int, number: int, seconds: float = 30) -> int:
    """Send one span over a new connection and return the status of the answer."""
    fields = {"content-type": "application/x-protobuf"}
    asked = urllib.request.Request(f"{running.http}/v1/traces", request(producer, number), fields)
    try:
        with urllib.request.urlopen(asked, timeout=seconds) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def connect(running: Running, seconds: float = 10) -> socket.socket:
    """Open a connection, which is reset when it is closed."""
    made = socket.create_connection((urlsplit(running.http).hostname, urlsplit(running.http).port), timeout=seconds)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return made


def descriptors(running: Running) -> int:
    return sum(1 for _ in Path(f"/proc/{running.process.pid}/fd").iterdir())


def counts(running: Running) -> dict[str, tuple[int, int]]:
    """How many spans each run has, and how many different ones."""
    rows = running.client.query("SELECT run_id, count(*), count(DISTINCT span_id) FROM spans GROUP BY run_id")["rows"]
    return {run_id: (spans, different) for run_id, spans, different in rows}


def test_garbage_beside_fifty_that_send_none(running) -> None:
    """Each acknowledged span is there once, whatever one other producer sends, on both protocols."""
    stop, garbage = threading.Event(), random.Random(7)

    def spoil() -> int:
        sent = 0
        while not stop.is_set():
            junk = garbage.randbytes(garbage.randrange(1, 5_000))
            head = f"POST /v1/traces HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-protobuf\r\ncontent-length: {len(junk)}\r\n\r\n"
            begins = (
                head.encode(),
                head.encode()[: garbage.randrange(len(head))],
                _PREFACE,
                _PREFACE + frame(4, 0, 0),
                b"",
            )
            with connect(running, 60) as one:  # fifty others connect, on a machine that may be busy
                one.sendall(garbage.choice(begins) + junk)
            sent += 1
        return sent

    def produce(producer: int) -> list[int]:
        numbers = (number for number in range(20) if not stop.is_set())
        if producer % 2:
            return [export(running, producer, number) for number in numbers]
        with grpc.insecure_channel(urlsplit(running.said["grpc"]).netloc) as channel:
            call = channel.unary_unary(_EXPORT)
            return [200 if call(request(producer, number), timeout=30) is not None else 0 for number in numbers]

    with ThreadPoolExecutor(51) as pool:
        spoiling = pool.submit(spoil)
        producing = [pool.submit(produce, producer) for producer in range(50)]
        wait(producing, return_when=FIRST_EXCEPTION)  # one that fails ends all
        stop.set()
        answers = [one.result() for one in producing]
        sent = spoiling.result()
    found = counts(running)
    code, said = running.end()

    assert answers == [[200] * 20] * 50
    assert found == {f"p{producer}": (20, 20) for producer in range(50)}
    assert sent > 10
    assert (code, "Traceback" in said) == (0, False), said


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame of HTTP/2 (RFC 9113 §4.1)."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def held(running: Running, sent: bytes) -> list[socket.socket]:
    """Open many connections that send this and no more."""
    made = [connect(running) for _ in range(_CONNECTIONS)]
    for one in made:
        one.sendall(sent)
    return made


def dripped(running: Running) -> list[socket.socket]:
    """Send headers byte by byte."""
    made = held(running, b"POST /v1/traces HTTP/1.1\r\n")
    for letter in b"x-header: value\r\n":
        for one in made:
            one.sendall(bytes((letter,)))
    return made


def flooded(running: Running, frames: Callable[[int], bytes]) -> list[socket.socket]:
    """Send frames without a pause, and read no answer."""
    made = [connect(running) for _ in range(4)]
    end = time.monotonic() + _FLOOD_SECONDS

    def flood(one: socket.socket) -> None:
        one.settimeout(_FLOOD_SECONDS)
        one.sendall(_PREFACE + frame(4, 0, 0))
        number = 0
        try:
            while time.monotonic() < end:
                one.sendall(frames(number))
                number += 1
        except OSError:  # the service takes no more, or has closed the connection
            return

    with ThreadPoolExecutor(len(made)) as pool:
        list(pool.map(flood, made))
    return made


def _reset(number: int) -> bytes:
    """A hundred calls, each of which is cancelled at once."""
    fields = b"\x83\x86\x04\x02/a\x01\x01a\x0f\x10\x10application/grpc\x40\x02te\x08trailers"
    streams = (2 * (100 * number + one) + 1 for one in range(100))
    return b"".join(frame(1, 4, stream, fields) + frame(3, 0, stream, b"\0\0\0\x08") for stream in streams)


ATTACKS: dict[str, Callable[[Running], list[socket.socket]]] = {
    "half-open": lambda running: held(running, b""),
    "half a preface": lambda running: held(running, _PREFACE[:10]),
    "slow loris": dripped,
    "idle HTTP/2": lambda running: held(running, _PREFACE + frame(4, 0, 0)),
    "settings flood": lambda running: flooded(running, lambda _: frame(4, 0, 0, b"\0\3\0\0\0\x64") * 500),
    "ping flood": lambda running: flooded(running, lambda _: frame(6, 0, 0, b"12345678") * 500),
    "rapid reset": lambda running: flooded(running, _reset),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_others_are_answered_meanwhile(running, attack: str) -> None:
    """An exporter is answered during and after it, connections that ended are let go, and the service stops when it is asked to."""
    assert export(running, 0, 0) == 200
    before = descriptors(running)
    made = ATTACKS[attack](running)
    during = [export(running, 0, number) for number in range(1, 4)]
    for one in made:
        one.close()
    after = export(running, 0, 4)
    if attack not in ("ping flood", "rapid reset"):  # grpcio reads what it was sent for a while
        end = time.monotonic() + 30
        while descriptors(running) > before + 2 and time.monotonic() < end:
            export(running, 0, 4)
        assert descriptors(running) <= before + 2
    found = counts(running)
    code, said = running.end()

    assert (during, after) == ([200] * 3, 200)
    assert found == {"p0": (5, 5)}
    assert code == 0
    assert "Traceback" not in said


def test_no_descriptor_is_left(running) -> None:
    """It is said once; who is connected is served, and others are when there is room again."""
    with grpc.insecure_channel(urlsplit(running.said["grpc"]).netloc) as channel:
        call = channel.unary_unary(_EXPORT)
        call(request(0, 0), timeout=30)
        running.client.list_runs()  # loads what answers questions
        limit = descriptors(running) + 20
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
        made = [connect(running) for _ in range(100)]
        with pytest.raises(TimeoutError):
            export(running, 0, 1, seconds=2)
        call(request(0, 2), timeout=30)
        for one in made:
            one.close()
        again = export(running, 0, 3)
        found = counts(running)
    code, said = running.end()

    assert again == 200
    assert found["p0"][0] == found["p0"][1]
    assert found["p0"][0] in (3, 4)  # the one that was not answered may have been read when there was room
    assert code == 0
    assert said.splitlines()[0] == (
        "connections wait: Too many open files. Raise the limit (`ulimit -n`), or have clients keep fewer open"
    )
    assert said.count("Too many open files") == 1
    assert "Traceback" not in said

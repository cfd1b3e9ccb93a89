"""Broken requests and a broken world: each a stated answer, the process alive, the next good request stored.

The rows are those of docs/faults.md; a test keeps them alike.
"""

from __future__ import annotations

import gzip
import http.client
import inspect
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
from fault_table import FAULTS, NOT_APPLICABLE, Fault, Row, request_table
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from otlp_messages import METHODS, RUN, as_json, export, span, traces

from clawtrace.errors import ReceiverError, StoreError
from clawtrace.receiver.close import wait_closed
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.receiver.receiver import Receiver
from clawtrace.store.duckdb import DuckStore

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
PROCESS = Path(__file__).parent / "receiving_process.py"
PROTOCOLS = ("grpc", "protobuf", "json")
MEDIA = {"protobuf": "application/x-protobuf", "json": "application/json"}


@pytest.fixture(scope="module")
def store() -> Iterator[DuckStore]:
    opened = DuckStore()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def running(store: DuckStore) -> Iterator[Receiver]:
    """One receiver for all faults: whatever came before, it must go on."""
    with Receiver(store, environ={}) as receiver:
        yield receiver


def send(receiver: Receiver, protocol: str, fault: Fault, run: str) -> tuple[str, str]:
    """Send a fault and return the answer in the words of the table, and its message."""
    protobuf, text = fault.bodies()
    gzipped = fault.headers.get("content_encoding") == "gzip"
    if protocol == "grpc":
        code, details, body, _ = export(
            receiver.endpoints.grpc, "traces", protobuf, metadata={"x-clawtrace-run-id": run}, gzip=gzipped
        )
        partial = ExportTraceServiceResponse.FromString(body).partial_success
        rejected = f", {partial.rejected_spans} rejected" if partial.rejected_spans else ""
        return f"`{code.name}`{rejected}", details or partial.error_message
    body = protobuf if protocol == "protobuf" else text
    if gzipped and not body.startswith(b"\x1f\x8b"):
        body = gzip.compress(body, 1)
    fields = {"content-type": MEDIA[protocol]} | {key.replace("_", "-"): value for key, value in fault.headers.items()}
    status, answer = post(receiver.endpoints.http, body, fields | {"x-clawtrace-run-id": run})
    as_text = fields["content-type"] == MEDIA["json"]
    if status != 200:
        return str(status), answer.decode("utf-8", "replace")
    if as_text:
        refusal = json.loads(answer).get("partialSuccess", {})
        count, message = int(refusal.get("rejectedSpans", 0)), refusal.get("errorMessage", "")
    else:
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
        count, message = partial.rejected_spans, partial.error_message
    return "200" + (f", {count} rejected" if count else ""), message


def post(base: str, body: bytes, fields: dict[str, str]) -> tuple[int, bytes]:
    """POST spans; an answer that comes before the body has been sent is read all the same."""
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=60)
    try:
        connection.putrequest("POST", "/v1/traces")
        for name, value in (fields | {"content-length": str(len(body))}).items():
            connection.putheader(name, value)
        connection.endheaders()
        try:
            connection.send(body)
        except ConnectionError:
            assert len(body) > 1_000_000
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def stored(store: DuckStore, run: str) -> list[Row]:
    rows = store.script(
        'SELECT t."SpanName", t."ParentSpanId", t.start_ns, t.end_ns, t."SpanAttributes" FROM otel_traces AS t '
        "JOIN run_numbers AS n ON n.run_no = t.run_no WHERE n.run_id = $run",
        {"run": run},
    )
    return [dict(zip(("name", "parent", "start_ns", "end_ns", "attributes"), row, strict=True)) for row in rows]


def good(receiver: Receiver, protocol: str, run: str) -> bool:
    """Whether a good request is acknowledged."""
    message = traces(span("good", trace="f00d"), resource={RUN: run})
    if protocol == "grpc":
        return export(receiver.endpoints.grpc, "traces", message.SerializeToString())[0] == grpc.StatusCode.OK
    body = message.SerializeToString() if protocol == "protobuf" else json.dumps(as_json(message)).encode()
    return post(receiver.endpoints.http, body, {"content-type": MEDIA[protocol]})[0] == 200


CASES = [
    pytest.param(fault, protocol, id=f"{fault.name}-{protocol}")
    for fault in FAULTS
    for protocol in PROTOCOLS
    if getattr(fault, protocol) != NOT_APPLICABLE
]


@pytest.mark.parametrize(("fault", "protocol"), CASES)
def test_a_broken_request(running, store, fault, protocol):
    """The stated answer and message, exactly what is kept, a run that cannot claim to be complete, and life goes on."""
    run = f"{fault.name}/{protocol}"
    running.open_run(run)
    answer, message = send(running, protocol, fault, run)
    wait_closed(running, run, processes_gone=True)
    counted = running.counters(run)

    assert answer == getattr(fault, protocol)
    assert fault.words in message
    assert fault.stored(stored(store, run))
    lost = answer not in ("`OK`", "200")
    assert (counted.rejected + counted.refused > 0) == lost
    assert bool(counted.reasons) == lost
    assert good(running, protocol, f"{run}/good")
    assert [row["name"] for row in stored(store, f"{run}/good")] == ["good"]


def test_half_a_character_in_the_id_of_a_run(running, store):
    """It is replaced like any other: a run that the store could not register would keep all others from being stored."""
    text = json.dumps(as_json(traces(span("half"), resource={RUN: "ID"}))).replace("ID", "half \\ud800").encode()
    status, _ = post(running.endpoints.http, text, {"content-type": MEDIA["json"]})

    assert status == 200
    assert [row["name"] for row in stored(store, "half \ufffd")] == ["half"]
    assert good(running, "grpc", "after half a character")


class Starved:
    """A receiver in a separate process."""

    def __init__(self, path: Path, limit: int = 0) -> None:
        command = [sys.executable, str(PROCESS), str(path), str(limit)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.endpoints = json.loads(self.process.stdout.readline())

    def lift(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "lifted\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def __enter__(self) -> Starved:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.communicate("")


class Load:
    """Exporters that send as fast as they are answered, and remember what was acknowledged."""

    def __init__(self, endpoints: dict[str, str], exporters: int = 4) -> None:
        self.acknowledged: set[str] = set()
        self._endpoints = endpoints
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(n,)) for n in range(exporters)]
        for thread in self._threads:
            thread.start()

    def _send(self, number: int) -> None:
        channel = grpc.insecure_channel(
            urlsplit(self._endpoints["grpc"]).netloc, options=[("grpc.use_local_subchannel_pool", 1)]
        )
        connection = http.client.HTTPConnection(urlsplit(self._endpoints["http"]).netloc, timeout=30)
        call = channel.unary_unary(METHODS["traces"])
        with channel:
            for request in range(1_000_000):
                names = [f"{number}.{request}.{item}" for item in range(5)]
                spans = [
                    span(
                        name,
                        trace=f"{number + 1:x}",
                        span_id=f"{request * 5 + item + 1:x}",
                        attributes={"a": "x" * 500},
                    )
                    for item, name in enumerate(names)
                ]
                body = traces(*spans, resource={RUN: f"r{number}"}).SerializeToString()
                try:
                    if number % 2:
                        call(body, timeout=30)
                    else:
                        connection.request("POST", "/v1/traces", body, {"content-type": MEDIA["protobuf"]})
                        answer = connection.getresponse()
                        answer.read()
                        if answer.status != 200:
                            continue
                except (grpc.RpcError, OSError, http.client.HTTPException):
                    return
                self.acknowledged.update(names)
                if len(self.acknowledged) > 1_000:
                    self._enough.set()

    def wait(self) -> None:
        assert self._enough.wait(60)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


def names_in(path: Path) -> list[str]:
    """The names of all stored spans."""
    opened = DuckStore(path)
    rows = opened.script('SELECT "SpanName" FROM otel_traces')
    opened.close()
    return [row[0] for row in rows]


class TestTheWorld:
    """What is wrong is not the request."""

    @pytest.mark.parametrize("attempt", [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, 11))])
    def test_kill_9_under_load(self, tmp_path, attempt):
        """`kill -9` under load, then a restart: no acknowledged span is lost, and none is stored twice."""
        path = tmp_path / "spans.duckdb"
        starved = Starved(path)
        load = Load(starved.endpoints)
        load.wait()
        time.sleep(attempt * 0.037)  # other instants of the commit in other attempts
        starved.kill()
        load.join()
        found = names_in(path)

        assert load.acknowledged - set(found) == set()
        assert len(found) == len(set(found))
        with Starved(path) as again:
            channel = grpc.insecure_channel(urlsplit(again.endpoints["grpc"]).netloc)
            channel.unary_unary(METHODS["traces"])(traces(span("after")).SerializeToString(), timeout=30)
            channel.close()
        assert "after" in names_in(path)

    def test_a_full_disk(self, tmp_path):
        """A full disk: `UNAVAILABLE` and 503; acknowledged data stays, retries are stored once there is room; the service says so once, and is not ready."""
        path = tmp_path / "spans.duckdb"
        with Starved(path, limit=400_000) as starved:
            body = {n: traces(span(f"s{n}", span_id=f"{n:x}", attributes={"a": "x" * 20_000}), resource={RUN: "r"}).SerializeToString() for n in range(1, 60)}  # fmt: skip
            fields = {"content-type": MEDIA["protobuf"]}
            answers = {n: post(starved.endpoints["http"], body[n], fields)[0] for n in body}
            code = export(starved.endpoints["grpc"], "traces", body[59])[0]

            assert set(answers.values()) == {200, 503}
            assert code == grpc.StatusCode.UNAVAILABLE
            assert starved.process.poll() is None
            starved.lift()
            later = post(starved.endpoints["http"], body[59], fields)[0]
        found = names_in(path)

        assert {f"s{n}" for n, status in answers.items() if status == 200} <= set(found)
        assert (later, "s59" in found) == (200, True)

    def test_a_store_that_cannot_be_created(self):
        """A read-only disk: nothing starts, the message names the file."""
        with pytest.raises(StoreError, match=r"/proc/spans\.duckdb"):
            DuckStore("/proc/spans.duckdb")

    def test_a_slow_disk(self, store):
        """A slow disk: answers wait for it; beyond the byte bound requests are refused, to be retried."""
        gate = threading.Event()

        class Slow:
            run_no = staticmethod(store.run_no)

            @staticmethod
            def commit(*batch) -> None:
                gate.wait()
                store.commit(*batch)

        settings = ReceiverSettings(max_request_bytes=100_000, queue_bytes=150_000)
        message = [traces(span(f"slow{n}", attributes={"a": "x" * 60_000}), resource={RUN: "slow"}) for n in range(3)]
        answers: dict[int, int] = {}
        answered = threading.Event()
        with Receiver(Slow, settings, environ={}) as receiver:

            def send(place: int) -> None:
                body, fields = message[place].SerializeToString(), {"content-type": MEDIA["protobuf"]}
                answers[place] = post(receiver.endpoints.http, body, fields)[0]
                answered.set()

            threads = [threading.Thread(target=send, args=(place,)) for place in range(3)]
            for thread in threads:
                thread.start()
            assert answered.wait(30)
            assert list(answers.values()) == [503]
            gate.set()
            for thread in threads:
                thread.join()
        assert sorted(answers.values()) == [200, 200, 503]
        assert {row["name"] for row in stored(store, "slow")} == {f"slow{n}" for n, s in answers.items() if s == 200}

    @pytest.mark.parametrize("field", ["grpc_port", "http_port"])
    def test_a_port_that_is_taken(self, running, store, field):
        """A port that is in use: nothing starts, the message names the port and the setting."""
        port = urlsplit(getattr(running.endpoints, field.removesuffix("_port"))).port
        with pytest.raises(ReceiverError, match=rf":{port}.*choose another `{field}`"):
            Receiver(store, ReceiverSettings(**{field: port}), environ={}).start()


def world_table() -> str:
    """The table of what is wrong around the receiver: the docstrings of its tests."""
    rows = []
    for name, test in vars(TestTheWorld).items():
        if name.startswith("test_"):
            what, _, answer = " ".join(inspect.getdoc(test).split()).partition(": ")
            rows.append(f"| {what[0].lower()}{what[1:]} | {answer.removesuffix('.')} |")
    return "\n".join(["| situation | what happens |", "|---|---|", *rows])


def test_the_page_has_these_rows():
    """What is tested here stands in docs/faults.md."""
    tables = re.findall(r"^\|.*?(?=\n\n|\Z)", PAGE.read_text().rstrip(), re.MULTILINE | re.DOTALL)

    assert tables[0] == request_table()
    assert [row for row in world_table().splitlines() if row not in tables[1].splitlines()] == []

"""What receiving costs, from the socket to the durable row, with redaction on.

    python benchmarks/ingest.py [--seconds 6] [--blast 1000000]
    python benchmarks/ingest.py --memory --loads 5x4 --blast 0

The receiver is a separate process with a DuckDB file, or with `--memory` a store in memory as `clawtrace run` has it;
clients send over loopback sockets, gRPC and HTTP, requests of 5
and of 512 spans with 12 attributes (2 KB a span). A figure is spans per second of the server's CPU time, user and
system, so that it does not depend on how many cores there are and what else they do. Then: how long one exporter of the
OpenTelemetry SDK waits for 5 spans to be acknowledged, and what memory the receiver takes, idle and under a blast.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
NUMBER = b"\xf3\xf2\xf1\xf0"
"""Stands in ids where the request's number goes; in texts it is written in hexadecimal digits."""
RUN = "run-of-a-client-00"
"""Stands in a request where the name of the client's run goes: each client is one agent."""
BARS = {(512, 4): 20_000, (5, 32): 5_000, (5, 4): 5_000}
"""By spans a request and connections that send side by side, exporters of many agents or of a few: spans a CPU second."""
PROTOCOLS = ("grpc", "http/protobuf", "http/json")

SAID = "The weather in Lisbon is sunny with a light breeze from the north west, 24 degrees, and it will stay so. "


def attributes(place: int) -> dict[str, str | int | float]:
    """The 12 attributes of one span: half repeat in every span, half are its own."""
    own = f"{NUMBER.hex()}{place:04x}"
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"{own}: {SAID * 9}"}]}]
    answered = [{"role": "assistant", "parts": [{"type": "text", "content": f"{own}: {SAID * 5}"}]}]
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "gpt-4o-2024-08-06",
        "gen_ai.response.id": f"chatcmpl-{own}",
        "gen_ai.conversation.id": "conversation-1",
        "gen_ai.usage.input_tokens": 900 + place,
        "gen_ai.usage.output_tokens": place % 97,
        "gen_ai.request.temperature": 0.2,
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(answered),
        "server.address": "https://api.openai.com/v1/chat/completions",
    }


def request(spans: int, *, as_json: bool, extra: Mapping[str, str] | None = None) -> bytes:
    """One request with `NUMBER` in place of what makes it different from the next, and `extra` attributes of each span."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    def pair(key: str, value: str | int | float) -> KeyValue:
        kinds = {str: "string_value", int: "int_value", float: "double_value"}
        return KeyValue(key=key, value=AnyValue(**{kinds[type(value)]: value}))

    data = TracesData()
    group = data.resource_spans.add()
    group.resource.attributes.extend([pair("service.name", "bench"), pair("clawtrace.run_id", RUN)])
    below = group.scope_spans.add()
    below.scope.name = "bench"
    for place in range(spans):
        start = 1_700_000_000_000_000_000 + place * 1_000_000
        span = below.spans.add(name="chat gpt-4o", kind=3, start_time_unix_nano=start, end_time_unix_nano=start + 900)
        span.trace_id, span.span_id = NUMBER + bytes(11) + b"\x01", NUMBER + struct.pack(">I", place + 1)
        span.parent_span_id = NUMBER + struct.pack(">I", place // 4) if place else b""
        span.attributes.extend(pair(key, value) for key, value in (attributes(place) | dict(extra or {})).items())
    if not as_json:
        return data.SerializeToString()
    document = MessageToDict(data, use_integers_for_enums=True)
    for made, sent in zip(document["resourceSpans"][0]["scopeSpans"][0]["spans"], below.spans, strict=True):
        made |= {
            "traceId": sent.trace_id.hex(),
            "spanId": sent.span_id.hex(),
            "parentSpanId": sent.parent_span_id.hex(),
        }
    return json.dumps(document).encode()


class Server:
    """The receiver in a separate process, asked over its standard input."""

    def __init__(self, folder: Path, *, memory: bool = False) -> None:
        command = [sys.executable, __file__, "--serve", ":memory:" if memory else str(folder / "spans.duckdb")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.grpc, self.http = self.ask()

    def ask(self) -> list:
        """Read one answer."""
        return json.loads(self._process.stdout.readline())

    def usage(self) -> list[float]:
        """CPU seconds, memory now and at most in MB, spans stored; everything received is durable then."""
        self._process.stdin.write("usage\n")
        self._process.stdin.flush()
        return self.ask()

    def stop(self) -> None:
        """End it, and wait."""
        self._process.communicate("")


def serve(path: str) -> None:
    """Be the receiver: answer each line of standard input with what was used so far."""
    from clawtrace.receiver.receiver import Receiver
    from clawtrace.store.duckdb import DuckStore
    from clawtrace.support.memory import collect_seldom

    collect_seldom()  # as every command does
    store = DuckStore(path)
    with Receiver(store) as receiver:
        print(json.dumps([receiver.endpoints.grpc, receiver.endpoints.http]), flush=True)
        for _ in sys.stdin:
            receiver.flush()
            store.script("SELECT 1")  # whatever waits in the journal is moved into the tables
            used = resource.getrusage(resource.RUSAGE_SELF)
            now = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
            figures = [used.ru_utime + used.ru_stime, now, used.ru_maxrss / 1e3, receiver.counters().accepted]
            print(json.dumps(figures), flush=True)
    store.close()


def grpc_sender(address: str) -> Callable[[bytes], None]:
    """A client with a separate connection."""
    import grpc

    options = [
        ("grpc.max_send_message_length", -1),
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    return grpc.insecure_channel(urlsplit(address).netloc, options=options).unary_unary(EXPORT)


def http_sender(address: str, content_type: str, headers: Mapping[str, str] | None = None) -> Callable[[bytes], None]:
    """A client with a separate connection, which sends again after a moment where the receiver is busy."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc)

    def send(body: bytes) -> None:
        connection.request("POST", "/v1/traces", body, {"content-type": content_type, **(headers or {})})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status in (429, 503):
            time.sleep(0.2)
            send(body)
        elif answer.status != 200:
            raise SystemExit(f"the receiver answered {answer.status}: {said!r}")

    return send


def numbered(template: bytes, *, as_json: bool, first: int) -> Iterator[bytes]:
    """Requests without end, each with ids and texts of its own."""
    for number in range(first, 1 << 32):
        new = struct.pack(">I", number)
        body = template.replace(NUMBER.hex().encode(), new.hex().encode())
        yield body if as_json else body.replace(NUMBER, new)


def load(senders: list[Callable[[bytes], None]], template: bytes, enough: Callable[[int], bool], **how: bool) -> int:
    """Send from one thread a client, each as fast as it is answered, until it is `enough` (of requests); return how many."""
    sent = [0] * len(senders)

    def client(place: int) -> None:
        own = template.replace(RUN.encode(), f"{RUN[:-2]}{place:02}".encode())
        for body in numbered(own, first=LOADED[0] + (place << 20), **how):
            if enough(sum(sent)):
                return
            senders[place](body)
            sent[place] += 1

    threads = [threading.Thread(target=client, args=(place,)) for place in range(len(senders))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    LOADED[0] += 1 << 26
    return sum(sent)


LOADED = [1]
"""Number of the next load's first request."""


def measure(folder: Path, given: argparse.Namespace) -> None:
    """Print spans per second of server CPU, by protocol, size of the requests and number of clients."""
    for protocol in given.protocols:
        for spans, clients in given.loads:
            as_json = protocol == "http/json"
            template = request(spans, as_json=as_json)
            place = folder / f"{protocol.replace('/', '-')}-{spans}-{clients}"
            place.mkdir()
            server = Server(place, memory=given.memory)
            content_type = f"application/{'json' if as_json else 'x-protobuf'}"
            senders = [
                grpc_sender(server.grpc) if protocol == "grpc" else http_sender(server.http, content_type)
                for _ in range(clients)
            ]
            load(senders, template, lambda sent: sent > 20, as_json=as_json)
            before = server.usage()
            began, end = time.perf_counter(), time.monotonic() + given.seconds
            load(senders, template, lambda _, end=end: time.monotonic() > end, as_json=as_json)
            after = server.usage()
            taken = time.perf_counter() - began
            server.stop()
            count, cpu = after[3] - before[3], after[0] - before[0]
            print(
                f"{protocol:14} {spans:4} spans a request, {clients:2} clients: {count / cpu:8,.0f} spans/s of server CPU "
                f"(bar {BARS.get((spans, clients), 0):,}); {count / taken:8,.0f} spans/s, "
                f"{len(template) / spans / 1e3:.1f} kB a span",
                flush=True,
            )


def as_load(text: str) -> tuple[int, int]:
    """Read `5x4` as spans a request and clients."""
    spans, clients = text.split("x")
    return int(spans), int(clients)


def acknowledge(folder: Path, times: int = 400) -> None:
    """Print how long the SDK's exporters wait for 5 spans, and the memory of the receiver when idle."""
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    server = Server(folder)
    print(f"{'idle receiver':14} {server.usage()[1]:6.0f} MB (bar 150 MB)")
    exporters = {
        "grpc": GrpcExporter(server.grpc, insecure=True),
        "http/protobuf": HttpExporter(f"{server.http}/v1/traces"),
    }
    for protocol, exporter in exporters.items():
        memory, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(memory))
        waited = []
        for number in range(times + 20):
            for place in range(5):
                provider.get_tracer("bench").start_span("chat gpt-4o", attributes=attributes(place)).end()
            spans = memory.get_finished_spans()
            memory.clear()
            began = time.perf_counter()
            if exporter.export(spans) is not SpanExportResult.SUCCESS:
                raise SystemExit("the exporter failed")
            if number >= 20:
                waited.append((time.perf_counter() - began) * 1e3)
        cuts = statistics.quantiles(waited, n=100)
        print(
            f"{protocol:14} 5 spans, one exporter: acknowledged in {cuts[49]:.1f} ms p50, {cuts[98]:.1f} ms p99 (bars 8 and 20 ms)"
        )
    server.stop()


def blast(folder: Path, spans: int) -> None:
    """Print the memory of the receiver under `spans` spans, sent as fast as they are taken."""
    server = Server(folder)
    senders = [grpc_sender(server.grpc) for _ in range(8)]
    began = time.perf_counter()
    load(senders, request(512, as_json=False), lambda sent: sent * 512 >= spans, as_json=False)
    cpu, now, most, stored = server.usage()
    taken = time.perf_counter() - began
    print(
        f"{'blast':14} {stored:,.0f} spans in {taken:.0f} s: at most {most:,.0f} MB, {now:,.0f} MB after it (bar 1,000 MB); "
        f"{stored / cpu:,.0f} spans/s of server CPU"
    )
    server.stop()


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--serve", metavar="STORE", help=argparse.SUPPRESS)
    options.add_argument("--seconds", type=float, default=6, help="how long each load lasts")
    options.add_argument("--loads", type=as_load, nargs="+", default=list(BARS), metavar="SPANSxCLIENTS")
    options.add_argument("--protocols", choices=PROTOCOLS, nargs="+", default=PROTOCOLS)
    options.add_argument(
        "--memory", action="store_true", help="keep the store in memory; memory and waits are not measured"
    )
    options.add_argument("--blast", type=int, default=1_000_000, help="spans of the blast; 0 leaves it out")
    given = options.parse_args()
    if given.serve:
        serve(given.serve)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("idle", "blast"):
            (folder / part).mkdir()
        if not given.memory:
            acknowledge(folder / "idle")
        measure(folder, given)
        if given.blast and not given.memory:
            blast(folder / "blast", given.blast)


if __name__ == "__main__":
    main()

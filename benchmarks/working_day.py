"""Whether `clawtrace serve` is after a working day what it was in the morning: a hundred campaigns, with retention on.

    python benchmarks/working_day.py [--campaigns 100] [--runs 20] [--keep-runs 200]

Each campaign announces its runs, exports their spans over HTTP and gRPC over new connections, ends and judges them, asks a
question, and is followed by a producer that sends garbage and one that leaves in the middle of a request. Printed are memory,
descriptors, threads and the megabytes of the store, each as the least of the second quarter and of the last (a sweep of the retention comes
once a minute); the exit code is 1 when one of them grew by more than a tenth.
"""

from __future__ import annotations

import argparse
import http.client
import random
import socket
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import grpc
from ingest import NUMBER, RUN, request
from kills import Sidecar

from clawtrace.sidecar.client import Client

CHECKS = "assertions:\n- {type: no_loops, max_repeats: 3}\n- {type: llm_call_count, min: 1}\n- {type: trace_cost, max_usd: 5}\n"
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SPANS = 60


class State(NamedTuple):
    """What the service holds."""

    memory_mb: float
    descriptors: int
    threads: int
    store_mb: float
    runs: int

    @classmethod
    def now(cls, sidecar: Sidecar, folder: Path, client: Client) -> State:
        """Look."""
        process = Path(f"/proc/{sidecar.process.pid}")
        fields = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
        store = sum(file.stat().st_size for file in folder.glob("spans.duckdb*"))
        return cls(
            int(fields["VmRSS"].split()[0]) / 1e3,
            sum(1 for _ in (process / "fd").iterdir()),
            int(fields["Threads"]),
            store / 1e6,
            len(client.list_runs()),
        )


def campaign(client: Client, sidecar: Sidecar, grpc_address: str, number: int, runs: int, body: bytes) -> None:
    """Run one campaign, with disturbances."""
    names = [f"campaign{number:04}-{place:05}" for place in range(runs)]
    for place, name in enumerate(names):
        client.begin_run(run_id=name, case_id=f"case{place}")
        own = body.replace(RUN.encode(), name.encode())  # of the same length
        new = ((number << 12) + place + 1).to_bytes(len(NUMBER), "big")
        own = own.replace(NUMBER.hex().encode(), new.hex().encode()).replace(NUMBER, new)
        if place % 2:
            connection = http.client.HTTPConnection(sidecar.address, timeout=30)
            connection.request("POST", "/v1/traces", own, {"content-type": "application/x-protobuf"})
            assert connection.getresponse().status == 200
            connection.close()
        else:
            with grpc.insecure_channel(grpc_address) as channel:
                channel.unary_unary(EXPORT)(own, timeout=30)
    with ThreadPoolExecutor(runs) as pool:
        list(pool.map(lambda name: client.end_run(name, exit_code=0, settle_ms=200), names))
    client.evaluate(CHECKS, run_id=names)
    client.query("SELECT name, sum(n_low) FROM run_tools GROUP BY name")
    host, port = sidecar.address.split(":")
    for sent in (random.randbytes(500), b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\nhalf"):
        with socket.create_connection((host, int(port))) as one:
            one.sendall(sent)


def main() -> int:
    """Run the day, and compare its second quarter with its last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=100)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--keep-runs", type=int, default=200)
    given = parser.parse_args()
    body = request(SPANS, as_json=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sidecar = Sidecar(folder, 0, "--keep-runs", str(given.keep_runs))
        client = Client.at(str(folder / "ready.json"))
        grpc_address = urlsplit(client.endpoints()["grpc"]).netloc
        began, states = time.perf_counter(), []
        for number in range(given.campaigns):
            campaign(client, sidecar, grpc_address, number, given.runs, body)
            states.append(State.now(sidecar, folder, client))
            if number % 10 == 9:
                print(f"{number + 1:4} campaigns, {time.perf_counter() - began:6.1f} s: {states[-1]}", flush=True)
        sidecar.process.terminate()
        _, said = sidecar.process.communicate()
    warm, last = states[len(states) // 4 : len(states) // 2], states[-len(states) // 4 :]
    grew = []
    for field in State._fields:
        before, after = (min(getattr(one, field) for one in part) for part in (warm, last))
        print(f"{field:12} {before:8.1f} in the second quarter, {after:8.1f} in the last")
        if after > 1.1 * before + 2:
            grew.append(field)
    if said.replace("stopping", "").strip() or grew:
        print(said, f"grew: {grew}")
    return int(bool(grew))


if __name__ == "__main__":
    sys.exit(main())

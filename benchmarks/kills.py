"""Whether `clawtrace serve` loses acknowledged spans when it is killed under load.

    python benchmarks/kills.py [--kills 100] [--producers 50] [--seconds 0]

Producers, each with a connection and a separate run, send requests of 5 spans over HTTP, and send again what was not acknowledged,
as exporters do. `clawtrace serve` is killed (SIGKILL) after a random number of acknowledgements and started again on the same
store and port. With `--seconds`, the last process is then loaded for so long without a kill. At the end every span of every
acknowledged request must be in the store, once; else the exit code is 1.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ingest import NUMBER, RUN, request

SPANS = 5
FEWEST, MOST = 50, 400
"""Acknowledgements between two kills."""


class Load:
    """What all producers share."""

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        self.address = ""
        self.headers = {"content-type": "application/x-protobuf", **(headers or {})}
        self.acknowledged: set[int] = set()
        self.repeated = 0
        self.changed = threading.Condition()
        self.up = threading.Event()
        self.over = threading.Event()

    def answered(self, number: int) -> None:
        """Remember an acknowledged request."""
        with self.changed:
            self.acknowledged.add(number)
            self.changed.notify_all()

    def wait_for_more(self, count: int) -> None:
        """Wait until so many more were acknowledged."""
        with self.changed:
            goal = len(self.acknowledged) + count
            if not self.changed.wait_for(lambda: len(self.acknowledged) >= goal, 120):
                raise SystemExit("no acknowledgement for 120 s")


def produce(place: int, template: bytes, load: Load, first: int = 0) -> None:
    """Send requests numbered from `first` until it is over; what was not acknowledged is sent again."""
    own = template.replace(RUN.encode(), f"{RUN[:-2]}{place:02}".encode())
    connection: http.client.HTTPConnection | None = None
    number = first + ((place + 1) << 20)
    while not load.over.is_set():
        new = struct.pack(">I", number)
        body = own.replace(NUMBER.hex().encode(), new.hex().encode()).replace(NUMBER, new)
        load.up.wait()
        try:
            connection = connection or http.client.HTTPConnection(load.address, timeout=30)
            connection.request("POST", "/v1/traces", body, load.headers)
            answer = connection.getresponse()
            answer.read()
            acknowledged = answer.status == 200
        except (OSError, http.client.HTTPException):
            connection, acknowledged = None, False
        if acknowledged:
            load.answered(number)
            number += 1
        else:
            load.repeated += 1


class Sidecar:
    """One process of `clawtrace serve`."""

    def __init__(self, folder: Path, port: int, *flags: str) -> None:
        ready = folder / "ready.json"
        command = [Path(sys.executable).parent / "clawtrace", "serve", "--grpc-port", "0", "--http-port", str(port)]
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--store", folder / "spans.duckdb", "--ready-file", ready, *flags],
            cwd=folder, stderr=subprocess.PIPE, text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "CLAWTRACE_"))},
        )  # fmt: skip
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        if not line.startswith("listening"):
            raise SystemExit(line + self.process.stderr.read())
        self.took = time.perf_counter() - began
        self.address = urlsplit(json.loads(ready.read_text())["http"]).netloc

    def memory(self) -> float:
        """Return the most memory it had, in MB."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:
            return 0.0
        return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM:")), 0.0)


def stored(path: Path, *, facts: bool) -> dict[int, int]:
    """Return the number of spans that the store has of each request; none may be there twice.

    Args:
        path: of the store.
        facts: ask the relation, in which a span that was sent again after a kill counts once; else the raw rows, of which
            facts need not be computed.
    """
    from clawtrace.session.session import Session
    from clawtrace.store.duckdb import DuckStore

    counted = "SELECT left({0}, 8), count(*), count(DISTINCT {0}) FROM {1} GROUP BY 1"
    if facts:
        with Session.open(path) as session:
            rows = session.query(counted.format("span_id", "spans")).rows
    else:
        store = DuckStore(path)
        rows = store.script(counted.format('"SpanId"', "otel_traces"))
        store.close()
    twice = [request for request, spans, different in rows if spans > different]
    if twice:
        raise SystemExit(f"spans of {len(twice):,} requests are stored twice, such as of {twice[0]}")
    return {int(request, 16): spans for request, spans, _ in rows}


def main() -> None:
    """Load, kill, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--producers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance, load, template = random.Random(given.seed), Load(), request(SPANS, as_json=False)
    with tempfile.TemporaryDirectory(prefix="clawtrace-kills-") as name:
        folder, port, took, most = Path(name), 0, [], 0.0
        producers = [
            threading.Thread(target=produce, args=(place, template, load), daemon=True)
            for place in range(given.producers)
        ]
        for thread in producers:
            thread.start()
        began = time.perf_counter()
        for turn in range(given.kills + 1):
            sidecar = Sidecar(folder, port)
            load.address, port = sidecar.address, int(sidecar.address.rpartition(":")[2])
            took.append(sidecar.took)
            load.up.set()
            load.wait_for_more(chance.randint(FEWEST, MOST))
            if turn < given.kills:
                most = max(most, sidecar.memory())
                sidecar.process.kill()
                load.up.clear()
                sidecar.process.communicate()
        quiet, before = time.perf_counter(), len(load.acknowledged)
        thirds: list[float] = []
        while (passed := time.perf_counter() - quiet) < given.seconds:
            load.wait_for_more(100)
            if passed >= given.seconds * (len(thirds) + 1) / 3:
                thirds.append(sidecar.memory())
        thirds.append(sidecar.memory())
        rate = (len(load.acknowledged) - before) * SPANS / max(time.perf_counter() - quiet, 1e-9)
        load.over.set()
        for thread in producers:
            thread.join()
        most = max(most, sidecar.memory())
        sidecar.process.terminate()
        sidecar.process.communicate()
        found = stored(folder / "spans.duckdb", facts=given.kills > 0)
    lost = sorted(number for number in load.acknowledged if found.get(number, 0) != SPANS)
    print(
        f"{given.kills} kills, {given.producers} producers, {time.perf_counter() - began:.0f} s: "
        f"{len(load.acknowledged) * SPANS:,} spans acknowledged, {len(lost) * SPANS:,} of them lost; "
        f"{load.repeated:,} requests were sent again; first start {took[0]:.1f} s, slowest start {max(took):.1f} s, most memory {most:,.0f} MB"
        + (
            f"; {rate:,.0f} spans/s for {given.seconds:g} s without a kill, most memory after each third of them "
            f"{', '.join(f'{one:,.0f}' for one in thirds)} MB"
            if given.seconds
            else ""
        )
    )
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()

"""`clawtrace serve` behind a network that is slow, loses packets, and is cut: agents in a network namespace of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Running

from not_run import not_run

pytestmark = pytest.mark.full

HOST, AGENT = "10.213.77.1", "10.213.77.2"
PRODUCER = """
import sys, time, urllib.request, grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
base, protocol, run, spans = *sys.argv[1:4], int(sys.argv[4])
def request(number):
    sent = ExportTraceServiceRequest()
    at = sent.resource_spans.add()
    at.resource.attributes.add(key="clawtrace.run_id").value.string_value = run
    span = at.scope_spans.add().spans.add(name="x" * 300, start_time_unix_nano=1, end_time_unix_nano=2)
    span.trace_id, span.span_id = hash((run, 1)).to_bytes(16, "big", signed=True), (number + 1).to_bytes(8, "big")
    return sent.SerializeToString()
def over_http(body):
    head = {"content-type": "application/x-protobuf"}
    urllib.request.urlopen(urllib.request.Request(base + "/v1/traces", body, head), timeout=2).read()
channel = grpc.insecure_channel(base.removeprefix("http://"))
call = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
send = over_http if protocol == "http" else lambda body: call(body, timeout=2)
again = 0
for number in range(spans):
    while True:
        try:
            send(request(number))
            break
        except (OSError, grpc.RpcError):
            again += 1
            time.sleep(0.1)
    print(number, flush=True)
print("again", again, flush=True)
if sys.argv[5:]:
    time.sleep(600)
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def namespace() -> Iterator[str]:
    """A namespace whose only way to this machine loses what is more than its rate."""
    name = f"clawtrace-{os.getpid()}"
    if (
        not hasattr(os, "geteuid")
        or os.geteuid()
        or subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode
    ):
        not_run("netns", "no network namespace can be made here (`ip netns add`, as root)")
    try:
        ip("link", "add", "ct-here", "type", "veth", "peer", "name", "ct-there", "netns", name)
        ip("addr", "add", f"{HOST}/24", "dev", "ct-here")
        ip("link", "set", "ct-here", "up")
        ip("-n", name, "addr", "add", f"{AGENT}/24", "dev", "ct-there")
        ip("-n", name, "link", "set", "ct-there", "up")
        for tc in (["tc"], ["ip", "netns", "exec", name, "tc"]):
            device = "ct-here" if tc == ["tc"] else "ct-there"
            slow = ["qdisc", "add", "dev", device, "root", "tbf", "rate", "1mbit", "burst", "3kb", "limit", "6kb"]
            if subprocess.run([*tc, *slow], capture_output=True).returncode:
                not_run("tbf", "the kernel has no token bucket (`tc qdisc add … tbf`)")
        yield name
    finally:
        subprocess.run(["ip", "link", "del", "ct-here"], capture_output=True)
        ip("netns", "del", name)


@pytest.fixture
def running(tmp_path: Path, namespace: str) -> Iterator[Running]:
    service = Running(tmp_path, "--store", "spans.duckdb", "--host", HOST, "--insecure")
    yield service
    if service.process.poll() is None:
        service.process.kill()
        service.process.communicate()


def producing(namespace: str, running: Running, protocol: str, run: str, *more: str) -> subprocess.Popen[str]:
    command = ["ip", "netns", "exec", namespace, sys.executable, "-c", PRODUCER, running.http, protocol, run, *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def descriptors(running: Running) -> int:
    return sum(1 for _ in Path(f"/proc/{running.process.pid}/fd").iterdir())


def test_every_span_is_there_once(running: Running, namespace: str) -> None:
    """The network loses packets, is cut twice, and what was sent again for want of an answer counts once."""
    agents = [producing(namespace, running, ("http", "grpc")[number % 2], f"r{number}", "60") for number in range(6)]
    for agent in agents:
        assert agent.stdout is not None
        agent.stdout.readline()
    for seconds in (1, 4):  # the first heals by itself, in the second requests are given up
        ip("link", "set", "ct-here", "down")
        time.sleep(seconds)
        ip("link", "set", "ct-here", "up")
        time.sleep(1)
    said = [agent.communicate(timeout=300)[0].splitlines()[-1] for agent in agents]
    rows = running.client.query("SELECT run_id, count(*), count(DISTINCT span_id) FROM spans GROUP BY run_id")["rows"]
    code, errors = running.end()

    assert sorted(tuple(row) for row in rows) == [(f"r{number}", 60, 60) for number in range(6)]
    assert sum(int(line.removeprefix("again ")) for line in said) > 0
    assert (code, "Traceback" in errors) == (0, False), errors


def test_a_machine_that_is_gone_holds_nothing(running: Running, namespace: str) -> None:
    """No end of its connection ever comes: it is found out in a minute, and let go."""
    before = descriptors(running)
    with producing(namespace, running, "grpc", "r", "3", "stay") as agent:
        assert agent.stdout is not None
        while not agent.stdout.readline().startswith("again"):
            pass
        held = descriptors(running)
        ip("link", "set", "ct-here", "down")
        agent.kill()
    end = time.monotonic() + 120
    while (left := descriptors(running)) > before + 2 and time.monotonic() < end:
        time.sleep(1)

    assert held > before + 2
    assert left <= before + 2

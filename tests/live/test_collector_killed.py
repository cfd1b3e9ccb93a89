"""What happens to a Collector never makes a verdict wrong: it is true, or inconclusive with the reason."""

from __future__ import annotations

import threading

import pytest
from broken_wire import UNAVAILABLE, BrokenWire
from live_suite import NOT_DELETED, Suite

from clawtrace.model.verdict import Status
from clawtrace.session.closing import FORWARDER_ENDED
from free_port import free_port
from otelcol import Collector

pytestmark = [pytest.mark.full, pytest.mark.needs("otelcol")]

SETTLED = "  telemetry: http/protobuf\n  settle_ms: 5000\n"


@pytest.fixture
def port(suite: Suite) -> int:
    """The receiver's port."""
    port = free_port()
    suite.project(f"receiver: {{http_port: {port}}}\n")
    return port


@pytest.fixture
def started():
    """What is ended after the test."""
    things: list[Collector | BrokenWire] = []
    yield things
    for one in things:
        one.kill() if isinstance(one, Collector) else one.close()


def agent(collector: Collector, how: str) -> str:
    return f"OTEL_EXPORTER_OTLP_ENDPOINT={collector.address} $AGENT {how}"


def reasons(found) -> str:
    return " ".join(found.incomplete_because)


def test_killed_before_the_agents_exit(suite, port, started, tmp_path):
    """What came before is one whole trace; that the Collector ended says that more may be missing."""
    collector: Collector
    wire = BrokenWire(port, answer=lambda _, data: (collector.kill(), data)[1])
    collector = Collector("to-clawtrace", tmp_path, CLAWTRACE_ENDPOINT=f"http://127.0.0.1:{wire.port}")
    started += [wire, collector]
    dead = f"while kill -0 {collector.process.pid} 2>/dev/null; do sleep 0.05; done"
    found = suite.judge(
        f"{agent(collector, 'flush read')}; {dead}; {agent(collector, 'flush delete_all')}", NOT_DELETED, SETTLED
    )

    assert (found.status, found.spans) == (Status.INCONCLUSIVE, 2)
    assert FORWARDER_ENDED in reasons(found)


def test_killed_with_the_last_batch(suite, port, started, tmp_path):
    """What it held when it was killed leaves children without their parent."""
    collector = Collector(
        "to-clawtrace",
        tmp_path,
        options=["--set=processors::batch::timeout=60s", "--set=processors::batch::send_batch_size=2",
                 "--set=processors::batch::send_batch_max_size=2"],
        CLAWTRACE_ENDPOINT=f"http://127.0.0.1:{port}",
    )  # fmt: skip
    started.append(collector)
    end = f"sleep 1; kill -9 {collector.process.pid}"
    found = suite.judge(f"{agent(collector, 'flush read write')}; {end}", NOT_DELETED, SETTLED)

    assert (found.status, found.spans) == (Status.INCONCLUSIVE, 2)
    assert "was never received" in reasons(found)


def test_an_answer_that_is_lost(suite, port, started, tmp_path):
    """The Collector sends the batch again, and each span counts once."""
    sent: list[int] = []

    def answer(number: int, data: bytes) -> bytes:
        sent.append(number)
        return UNAVAILABLE if number == 1 else data

    wire = BrokenWire(port, answer=answer)
    collector = Collector("to-clawtrace", tmp_path, CLAWTRACE_ENDPOINT=f"http://127.0.0.1:{wire.port}")
    started += [wire, collector]
    counted = '[{"type": "tool_call_count", "min": 2, "max": 2}, {"type": "tool_not_invoked", "tool": "delete_all"}]'
    found = suite.judge(agent(collector, "flush read write"), counted, SETTLED)

    assert sent == [1, 2]
    assert (found.status, found.spans, found.complete) == (Status.PASS, 3, True)


def test_a_full_queue(suite, port, started, tmp_path):
    """A Collector that drops what its queue does not take says so with its own metrics."""
    go_on = threading.Event()
    wire = BrokenWire(port, request=lambda number: number > 1 or go_on.wait(30))
    queue = "exporters::otlp_http/clawtrace::sending_queue"
    collector = Collector(
        "to-clawtrace",
        tmp_path,
        options=[f"--set={queue}::queue_size=1", f"--set={queue}::num_consumers=1", f"--set={queue}::block_on_overflow=false",
                 "--set=processors::batch::timeout=1ms"],
        CLAWTRACE_ENDPOINT=f"http://127.0.0.1:{wire.port}",
    )  # fmt: skip
    started += [wire, collector]
    announced = tmp_path / "announced"
    dropped = tmp_path / "dropped"

    def direct() -> None:
        wire.measured.wait(30)
        announced.touch()
        _wait_for(collector, "Sender failed", 3)
        go_on.set()
        dropped.touch()

    threading.Thread(target=direct, daemon=True).start()
    calls = [agent(collector, f"flush {tool}") for tool in ("read", "delete_all", "delete_all", "delete_all", "write")]
    awaited = [f"while [ ! -f {file} ]; do sleep 0.05; done" for file in (announced, dropped)]
    found = suite.judge("; ".join([awaited[0], *calls[:4], awaited[1], calls[4]]), NOT_DELETED, SETTLED)

    assert (found.status, found.spans) == (Status.INCONCLUSIVE, 4)
    assert "had no room for them in its queue" in reasons(found)


@pytest.mark.parametrize(("tool", "status"), [("write", Status.PASS), ("delete_all", Status.FAIL)])
def test_killed_and_restarted_with_its_queue_on_disk(suite, port, started, tmp_path, tool, status):
    """What one that was killed had not passed on is passed on by the next; the verdict is that of the whole run."""
    restarted = threading.Event()
    wire = BrokenWire(port, request=lambda _: restarted.is_set())
    values = {"CLAWTRACE_ENDPOINT": f"http://127.0.0.1:{wire.port}", "QUEUE_FOLDER": str(tmp_path / "queue")}
    first = Collector("durable", tmp_path, **values)
    started += [wire, first]

    def restart() -> None:
        first.process.wait()
        started.append(Collector("durable", tmp_path, instead_of=first, **values))
        restarted.set()

    thread = threading.Thread(target=restart)
    thread.start()
    found = suite.judge(f"{agent(first, f'flush read {tool}')}; kill -9 {first.process.pid}", NOT_DELETED, SETTLED)
    thread.join()

    assert (found.status, found.spans) == (status, 3), reasons(found)


def _wait_for(collector: Collector, text: str, times: int) -> None:
    while collector.log.read_text().count(text) < times and collector.process.poll() is None:
        threading.Event().wait(0.05)

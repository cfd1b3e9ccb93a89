"""When a run is closed: real processes, real exporters, real sockets; every wait is for an event."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
from otlp_messages import METHODS, RUN, post, span, traces

from clawtrace.model.run import ClosedBy
from clawtrace.receiver.attribution.connections import Changes, Connections
from clawtrace.receiver.close import wait_closed
from clawtrace.receiver.receiver import Receiver

AGENT = Path(__file__).parent / "exporting_agent.py"
LONG = {"settle_ms": 60_000, "trace_timeout_ms": 120_000}
"""With these, only what closes at once can let a test pass in time."""


def raw(message) -> bytes:
    return message.SerializeToString()


def agent(receiver: Receiver, protocol: str, run: str, how: str = "exit") -> subprocess.Popen[str]:
    base = receiver.endpoints.grpc if protocol == "grpc" else receiver.endpoints.http
    command = [sys.executable, str(AGENT), protocol, base, run, how]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
class TestExit:
    def test_an_agent_that_flushes_at_exit(self, receiver, sink, protocol):
        """Closed by its exit at once, with every span and log record, although it may have waited for minutes."""
        receiver.open_run("r1")
        process = agent(receiver, protocol, "r1")
        process.communicate()

        assert wait_closed(receiver, "r1", processes_gone=True, **LONG) == ClosedBy.EXIT
        assert {"root", "child", "said"} == set(sink.runs()["r1"])

    def test_killed_in_the_middle_of_a_request(self, receiver, sink, protocol):
        """What a killed agent had sent is committed before its run is closed by exit."""
        receiver.open_run("r1")
        sink.gate.clear()
        process = agent(receiver, protocol, "r1", "wait")
        sink.entered.wait()  # the request is in the writer's hands, the agent waits for its answer
        process.send_signal(signal.SIGKILL)
        process.communicate()
        closed: list[ClosedBy] = []
        waiter = threading.Thread(
            target=lambda: closed.append(wait_closed(receiver, "r1", processes_gone=True, **LONG))
        )
        waiter.start()
        sink.gate.set()
        waiter.join()

        assert closed == [ClosedBy.EXIT]
        assert {"root", "child"} <= set(sink.runs()["r1"])

    def test_a_process_that_we_did_not_start(self, receiver, protocol):
        """While a connection that carried the run's spans is open, exit closes nothing; settling does."""
        receiver.open_run("r1")
        process = agent(receiver, protocol, "r1", "stay")
        assert process.stdout is not None
        process.stdout.readline()

        assert wait_closed(receiver, "r1", processes_gone=True, settle_ms=50) == ClosedBy.SETTLED
        process.communicate("")

    def test_its_end_is_noticed_while_waiting(self, receiver, protocol):
        """When that connection ends, the wait ends with it."""
        receiver.open_run("r1")
        process = agent(receiver, protocol, "r1", "stay")
        assert process.stdout is not None
        process.stdout.readline()
        closed: list[ClosedBy] = []
        waiter = threading.Thread(
            target=lambda: closed.append(wait_closed(receiver, "r1", processes_gone=True, **LONG))
        )
        waiter.start()
        process.communicate("")
        waiter.join()

        assert closed == [ClosedBy.EXIT]

    def test_other_runs_do_not_matter(self, receiver, protocol):
        """An open connection of another run, and one that carried nothing, keep no run waiting."""
        receiver.open_run("r1")
        other = agent(receiver, protocol, "other", "stay")
        assert other.stdout is not None
        other.stdout.readline()
        address = urlsplit(receiver.endpoints.http)
        with socket.create_connection((address.hostname, address.port)):
            agent(receiver, protocol, "r1").communicate()

            assert wait_closed(receiver, "r1", processes_gone=True, **LONG) == ClosedBy.EXIT
        other.communicate("")

    def test_no_span_of_the_run(self, receiver, protocol):
        """A run of which nothing ever came is closed by exit at once."""
        receiver.open_run("r1")
        agent(receiver, protocol, "another").communicate()

        assert wait_closed(receiver, "r1", processes_gone=True, **LONG) == ClosedBy.EXIT
        assert receiver.counters("r1").accepted == 0


class TestSettling:
    def test_settles_after_the_last_arrival(self, receiver):
        """Without known processes a run is closed when nothing came for settle_ms after its last arrival."""
        receiver.open_run("r1")
        post(receiver.endpoints.http, "/v1/traces", raw(traces(span("s"), resource={RUN: "r1"})))
        closed = wait_closed(receiver, "r1", processes_gone=False, settle_ms=100)
        arrival = receiver.counters("r1").last_arrival_ns

        assert closed == ClosedBy.SETTLED
        assert arrival is not None
        assert time.time_ns() - arrival >= 100_000_000

    def test_an_arrival_while_waiting_starts_anew(self, receiver, sink):
        """A span that comes during the wait is in the run, and the wait begins again after it."""
        receiver.open_run("r1")
        started = threading.Event()
        closed: list[tuple[ClosedBy, int]] = []

        def wait() -> None:
            started.set()
            reason = wait_closed(receiver, "r1", processes_gone=False, settle_ms=500)
            closed.append((reason, time.time_ns()))

        waiter = threading.Thread(target=wait)
        waiter.start()
        started.wait()
        post(receiver.endpoints.http, "/v1/traces", raw(traces(span("late"), resource={RUN: "r1"})))
        waiter.join()

        assert [reason for reason, _ in closed] == [ClosedBy.SETTLED]
        assert closed[0][1] - (receiver.counters("r1").last_arrival_ns or 0) >= 500_000_000
        assert sink.runs() == {"r1": ["late"]}

    def test_the_longest_wait(self, receiver):
        """Where spans never stop coming, trace_timeout_ms ends the wait and says so."""
        receiver.open_run("r1")
        done = threading.Event()

        def keep_sending() -> None:
            place = 0
            while not done.is_set():
                place += 1
                body = raw(traces(span("s", span_id=f"{place:x}"), resource={RUN: "r1"}))
                post(receiver.endpoints.http, "/v1/traces", body)

        sender = threading.Thread(target=keep_sending)
        sender.start()
        closed = wait_closed(receiver, "r1", processes_gone=False, settle_ms=1_000, trace_timeout_ms=1_000)
        done.set()
        sender.join()

        assert closed == ClosedBy.TIMEOUT

    def test_the_end_of_the_command_counts(self, receiver):
        """Time that passed since the command's end is not waited again."""
        receiver.open_run("r1")
        an_hour_ago = time.monotonic() - 3_600

        assert (
            wait_closed(receiver, "r1", processes_gone=False, ended=an_hour_ago, settle_ms=3_000_000)
            == ClosedBy.SETTLED
        )

    def test_a_clock_that_is_set_back_is_not_waited_for(self, receiver, monkeypatch):
        """What arrived before the system's clock was set back by an hour settles like anything else."""
        receiver.open_run("r1")
        right = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: right() + 3_600 * 10**9)
        post(receiver.endpoints.http, "/v1/traces", raw(traces(span("s"), resource={RUN: "r1"})))
        monkeypatch.undo()

        assert (receiver.counters("r1").last_arrival_ns or 0) > time.time_ns()
        assert (
            wait_closed(receiver, "r1", processes_gone=False, settle_ms=50, trace_timeout_ms=3_000) == ClosedBy.SETTLED
        )

    def test_said_explicitly(self, receiver, sink):
        """`EndRun` closes at once, what was received is committed."""
        receiver.open_run("r1")
        post(receiver.endpoints.http, "/v1/traces", raw(traces(span("s"), resource={RUN: "r1"})))

        assert wait_closed(receiver, "r1", processes_gone=False, end_run=True, **LONG) == ClosedBy.END_RUN
        assert sink.runs() == {"r1": ["s"]}

    def test_spans_after_the_close_are_stored(self, receiver, sink):
        """Late spans are kept with their run."""
        receiver.open_run("r1")
        wait_closed(receiver, "r1", processes_gone=True, **LONG)
        post(receiver.endpoints.http, "/v1/traces", raw(traces(span("late"), resource={RUN: "r1"})))

        assert sink.runs() == {"r1": ["late"]}


class TestEvidenceLast:
    """A connection whose spans turned out later to be the run's."""

    def test_it_is_a_connection_of_the_run(self, receiver, sink):
        """While it is open, exit closes nothing: more of the run may come over it."""
        receiver.open_run("r1")
        stays = http.client.HTTPConnection(urlsplit(receiver.endpoints.http).netloc)
        stays.request("POST", "/v1/traces", raw(traces(span("early"))), {"content-type": "application/x-protobuf"})
        stays.getresponse().read()
        post(receiver.endpoints.http, "/v1/traces", raw(traces(span("named"), resource={RUN: "r1"})))

        assert {"early", "named"} == set(sink.runs()["r1"])
        assert wait_closed(receiver, "r1", processes_gone=True, settle_ms=50) == ClosedBy.SETTLED
        stays.close()
        assert wait_closed(receiver, "r1", processes_gone=True, **LONG) == ClosedBy.EXIT

    def test_also_when_it_turned_out_before_the_commit(self):
        """Both may be of one commit, after which the connections know what they carried."""
        connections = Connections(Changes())
        early = connections.opened(4318)
        connections.joined(7, 1)
        connections.carried(early, [7])

        assert connections.carry(1)


class TestUnread:
    def test_bytes_of_a_dead_process_in_the_socket(self, receiver, sink):
        """Requests of several megabytes left in the socket by a process that is gone are read before the close."""
        receiver.open_run("r1")
        address = urlsplit(receiver.endpoints.http)
        for place in range(1, 11):
            made = span("s", span_id=f"{place:x}", attributes={"a": "x" * 3_000_000})
            body = raw(traces(made, resource={RUN: "r1"}))
            head = (
                f"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
                f"content-length: {len(body)}\r\n\r\n"
            )
            with socket.create_connection((address.hostname, address.port)) as connection:
                connection.sendall(head.encode() + body)

            assert wait_closed(receiver, "r1", processes_gone=True, **LONG) == ClosedBy.EXIT
            assert place == len(sink.runs()["r1"])

    def test_grpc_calls_in_flight(self, receiver, sink):
        """Calls that wait for their commit when their client goes away are committed before the close."""
        receiver.open_run("r1")
        sink.gate.clear()
        channel = grpc.insecure_channel(urlsplit(receiver.endpoints.grpc).netloc)
        call = channel.unary_unary(METHODS["traces"])
        futures = [call.future(raw(traces(span(f"s{n}", span_id=f"{n:x}"), resource={RUN: "r1"}))) for n in range(1, 9)]
        sink.entered.wait()
        closed: list[ClosedBy] = []
        waiter = threading.Thread(
            target=lambda: closed.append(wait_closed(receiver, "r1", processes_gone=True, **LONG))
        )
        waiter.start()
        sink.gate.set()
        for future in futures:
            future.result()
        channel.close()
        waiter.join()

        assert closed == [ClosedBy.EXIT]
        assert {f"s{n}" for n in range(1, 9)} == set(sink.runs()["r1"])


class TestHalfWay:
    """What is somewhere between the sender and the queue holds the close up; each stage is stopped on purpose."""

    def closing(self, receiver, sink):
        """Start to close r1; return what it was closed by and what was stored at that moment, once it is."""
        found: list[tuple[ClosedBy, set[str]]] = []

        def close() -> None:
            closed = wait_closed(receiver, "r1", processes_gone=True, **LONG)
            found.append((closed, set(sink.runs().get("r1", ()))))

        thread = threading.Thread(target=close)
        thread.start()
        thread.join(0.3)  # time for a close that does not wait to show itself
        return thread, found

    def test_a_connection_that_was_not_accepted(self, receiver, sink):
        """A request in a connection that the server has not even accepted is read before the close."""
        receiver.open_run("r1")
        stop = threading.Event()
        receiver._ports._loop.call_soon_threadsafe(stop.wait)
        address = urlsplit(receiver.endpoints.http)
        body = raw(traces(span("s"), resource={RUN: "r1"}))
        head = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        thread, found = self.closing(receiver, sink)
        stop.set()
        thread.join()

        assert [(ClosedBy.EXIT, {"s"})] == found

    def test_a_request_that_waits_for_its_commit(self, receiver, sink):
        """A request whose sender is gone and whose commit is slow is committed before the close."""
        receiver.open_run("r1")
        sink.gate.clear()
        address = urlsplit(receiver.endpoints.http)
        body = raw(traces(span("s"), resource={RUN: "r1"}))
        head = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        thread, found = self.closing(receiver, sink)
        sink.gate.set()
        thread.join()

        assert [(ClosedBy.EXIT, {"s"})] == found

    @pytest.mark.parametrize("stage", ["_taken", "submit"])
    def test_a_grpc_call_that_was_not_queued(self, receiver, sink, monkeypatch, stage):
        """A call that was not looked at yet, or has not queued its request yet, is waited for."""
        receiver.open_run("r1")
        stop, reached = threading.Event(), threading.Event()
        owner = receiver._writer if stage == "submit" else receiver._grpc
        original = getattr(owner, stage)

        def slow(what):
            if stage == "submit" or what.method == METHODS["traces"]:
                reached.set()
                stop.wait()
            return original(what)

        monkeypatch.setattr(owner, stage, slow)
        channel = grpc.insecure_channel(urlsplit(receiver.endpoints.grpc).netloc)
        call = channel.unary_unary(METHODS["traces"]).future(raw(traces(span("s"), resource={RUN: "r1"})))
        reached.wait()
        thread, found = self.closing(receiver, sink)
        stop.set()
        call.result()
        channel.close()
        thread.join()

        assert [(ClosedBy.EXIT, {"s"})] == found


@pytest.mark.full
def test_many_runs_at_once(receiver, sink):
    """Sixteen agents side by side, half over gRPC: each closed by its own exit, with its own spans only."""
    closed: dict[str, ClosedBy] = {}

    def one(place: int) -> None:
        run, protocol = f"r{place}", "grpc" if place % 2 else "http/protobuf"
        receiver.open_run(run)
        agent(receiver, protocol, run).communicate()
        closed[run] = wait_closed(receiver, run, processes_gone=True, **LONG)

    threads = [threading.Thread(target=one, args=(place,)) for place in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {f"r{place}": ClosedBy.EXIT for place in range(16)} == closed
    assert all({"root", "child", "said"} == set(names) for names in sink.runs().values())
    assert len(sink.runs()) == 16

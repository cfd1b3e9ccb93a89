"""Sixty-four runs side by side on one receiver, each naming its run over another channel (spec: span-model.md §2)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from live_suite import HERE

from clawtrace.dialects.session_keys import SESSION_KEYS
from clawtrace.model.run import ClosedBy
from clawtrace.receiver.close import wait_closed
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.receiver.receiver import Receiver
from clawtrace.runners.base import RunRequest, StopSignal, TelemetryTarget
from clawtrace.runners.command import CommandRunner, CommandSettings
from clawtrace.session.session import Session
from clawtrace.store.duckdb import DuckStore

pytestmark = pytest.mark.full

ALL = ("grpc", "http/protobuf", "http/json")
HTTP = ("http/protobuf", "http/json")
SDK = ("grpc", "http/protobuf")
TWO = ("1", "2")
WAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...], set[str]]] = {
    "resource": (ALL, TWO, {"resource"}),
    "span_attribute": (ALL, TWO, {"span"}),
    "headers": (ALL, TWO, {"header"}),
    "path": (HTTP, TWO, {"path"}),
    "traceparent": (ALL, TWO, {"trace"}),
    "link": (ALL, TWO, {"link", "trace"}),
    "session": (ALL, TWO, {"session"}),
    "run_key": (ALL, TWO, {"run_key", "trace"}),
    "nothing": (ALL, TWO, {"none"}),
    "evidence_last": (ALL, TWO, {"resource", "trace"}),
    "children": (ALL, (*TWO, "child", "child"), {"resource", "trace"}),
    "threads": (ALL, (*TWO, "a", "b", "c", "d"), {"header"}),
    "conflict": (ALL, TWO, {"span"}),
    "all": (ALL, TWO, {"resource"}),
    "sdk": (SDK, (*TWO, "3"), {"resource"}),
    "sdk_overwrites_resource": (SDK, (*TWO, "3"), {"header"}),
    "sdk_traceparent": (SDK, (*TWO, "3"), {"resource"}),
    "two_sdks": (SDK, (*TWO, "3"), {"resource", "header"}),
}
"""Way: the protocols it is tried over, the labels of its spans, the rules that may decide them."""
RUNS = 64


@dataclass
class One:
    """One run of the matrix."""

    way: str
    protocol: str
    number: int
    trace_id: str = field(init=False)

    def __post_init__(self) -> None:
        self.trace_id = f"{self.number + 1:032x}"

    @property
    def name(self) -> str:
        return f"{self.way}-{self.number}"

    @property
    def run_id(self) -> str:
        return f"matrix/-/{self.name}/1-{self.number:04x}"

    @property
    def spans(self) -> Counter[str]:
        return Counter(f"{self.name}/{label}" for label in WAYS[self.way][1])


def sixty_four() -> list[One]:
    """Every way over every protocol, the light ones repeated until there are 64."""
    pairs = [(way, protocol) for way, (protocols, _, _) in WAYS.items() for protocol in protocols]
    light = [pair for pair in pairs if "sdk" not in pair[0]]
    pairs += light[: RUNS - len(pairs)]
    return [One(way, protocol, number) for number, (way, protocol) in enumerate(pairs)]


class Gate:
    """Lets the agents through once all of them stand before it."""

    def __init__(self, path: Path, agents: int) -> None:
        self.path = path
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(agents)
        self._server.settimeout(60)
        self._thread = threading.Thread(target=self._open, args=(agents,))
        self._thread.start()

    def _open(self, agents: int) -> None:
        with self._server:
            waiting = [self._server.accept()[0] for _ in range(agents)]
        for connection in waiting:
            connection.close()

    def join(self) -> None:
        self._thread.join()


@dataclass
class Matrix:
    """What came of the sixty-four runs."""

    runs: list[One]
    store: Path
    closed: dict[str, ClosedBy]
    waited: dict[str, float]
    conflicts: dict[str, set[tuple[str, str, str, str]]]
    rows: list[tuple[str, str, str]]
    """Run id, rule and name of every span."""

    def spans(self, run_id: str) -> Counter[str]:
        return Counter(name for run, _, name in self.rows if run == run_id)

    def of(self, way: str) -> list[One]:
        return [one for one in self.runs if one.way == way]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    folder = tmp_path_factory.mktemp("matrix")
    runs = sixty_four()
    gate = Gate(folder / "gate", len(runs))
    store = DuckStore(folder / "spans.duckdb")
    closed: dict[str, ClosedBy] = {}
    waited: dict[str, float] = {}
    conflicts: dict[str, set[tuple[str, str, str, str]]] = {}
    failures: list[str] = []

    def run(one: One, receiver: Receiver) -> None:
        sessions = [f"session-{one.number}"]
        receiver.open_run(one.run_id, one.trace_id, sessions)
        own = folder / one.name
        own.mkdir()
        neighbour = runs[(one.number + 1) % len(runs)].run_id
        settings = CommandSettings(
            command=[sys.executable, str(HERE / "matrix_agent.py"), one.way, one.name],
            telemetry=one.protocol,
            timeout_seconds=100,
            env={
                "GATE": str(gate.path),
                "SESSION": sessions[0],
                "NEIGHBOUR": neighbour,
                "HTTP": receiver.endpoints.http,
                "GRPC": receiver.endpoints.grpc,
            },
        )
        request = RunRequest(
            run_id=one.run_id, case_id=one.name, messages=(),
            settings=settings, folder=own, case_dir=own, started_at=time.time(), base_env=dict(os.environ),
        )  # fmt: skip
        target = TelemetryTarget(receiver.endpoints.grpc, receiver.endpoints.http, one.trace_id, "1" * 16)
        outcome = CommandRunner().run(request, target, StopSignal())
        if outcome.exit_code != 0:
            failures.append(f"{one.name} {one.protocol}: {(own / 'stderr').read_text()}")
        began = time.monotonic()
        closed[one.run_id] = wait_closed(
            receiver, one.run_id, processes_gone=outcome.processes_gone, ended=outcome.ended, settle_ms=60_000
        )
        waited[one.run_id] = time.monotonic() - began

    with Receiver(store, ReceiverSettings(run_key="tenant.run", session_keys=SESSION_KEYS), environ={}) as receiver:
        threads = [threading.Thread(target=run, args=(one, receiver)) for one in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one in runs:
            reported = receiver.conflicts(one.run_id)
            conflicts[one.run_id] = {(c.rule, c.run_id, c.other_rule, c.other_run_id) for c in reported}
    gate.join()
    assert failures == []
    rows = store.script(
        'SELECT n.run_id, t.run_rule, t."SpanName" FROM otel_traces AS t JOIN run_numbers AS n ON n.run_no = t.run_no'
    )
    store.close()
    return Matrix(runs, folder / "spans.duckdb", closed, waited, conflicts, rows)


def test_there_are_sixty_four_runs_of_every_way(matrix):
    """The matrix is what it says: 64 runs, every way over every protocol it can go."""
    assert len(matrix.runs) == RUNS
    assert {(one.way, one.protocol) for one in matrix.runs} == {(w, p) for w, (ps, _, _) in WAYS.items() for p in ps}


def test_no_span_is_lost_or_stored_twice(matrix):
    """Every span that an agent exported is in the store, once."""
    assert Counter(name for _, _, name in matrix.rows) == sum((one.spans for one in matrix.runs), Counter())


@pytest.mark.parametrize("way", WAYS)
def test_no_span_in_a_wrong_run(matrix, way):
    """Each run holds exactly its own spans, and the rule that decided is the one of its channel."""
    for one in matrix.of(way):
        own = {(run, rule) for run, rule, name in matrix.rows if name.split("/")[0] == one.name}
        if way == "nothing":
            ((run, rule),) = own
            assert rule == "none"
            assert matrix.spans(run) == one.spans
            assert matrix.spans(one.run_id) == Counter()
        else:
            assert {run for run, _ in own} == {one.run_id}
            assert {rule for _, rule in own} <= WAYS[way][2]
            assert matrix.spans(one.run_id) == one.spans


def test_every_run_is_closed_by_its_own_exit(matrix):
    """No run waits for another's processes, connections or spans."""
    assert {run for run, why in matrix.closed.items() if why != ClosedBy.EXIT} == set()
    assert len(matrix.closed) == RUNS
    assert max(matrix.waited.values()) < 30


def test_conflicts_are_reported_with_both_rules(matrix):
    """A header that names a neighbour is outvoted by the span's own attribute, and both runs report it."""
    for one in matrix.of("conflict"):
        neighbour = matrix.runs[(one.number + 1) % RUNS].run_id
        expected = ("span", one.run_id, "header", neighbour)
        assert expected in matrix.conflicts[one.run_id]
        assert expected in matrix.conflicts[neighbour]
    silent = [one for one in matrix.runs if not {one.way, matrix.runs[one.number - 1].way} & {"conflict"}]
    assert {one.name for one in silent if matrix.conflicts[one.run_id]} == set()


def test_unattributed_traces_are_adopted(matrix):
    """`clawtrace runs` lists the traces that name no run, and gives them to the run that they are adopted by."""

    def clawtrace(*arguments: str) -> str:
        command = [Path(sys.executable).parent / "clawtrace", "runs", *arguments, "--store", matrix.store]
        done = subprocess.run(command, capture_output=True, text=True, cwd=matrix.store.parent, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = json.loads(clawtrace("list", "--unattributed", "--json"))
    strays = {one.name: {run for run, _, name in matrix.rows if name.startswith(f"{one.name}/")} for one in matrix.of("nothing")}  # fmt: skip
    assert {entry["run_id"] for entry in listed} == set().union(*strays.values())
    for one in matrix.of("nothing"):
        clawtrace("adopt", one.run_id, *strays[one.name])

    assert json.loads(clawtrace("list", "--unattributed", "--json")) == []
    with Session.open(matrix.store) as session:
        found = session.query("SELECT run_id, name, run_rule FROM spans").rows
    for one in matrix.runs:
        assert Counter(name for run, name, _ in found if run == one.run_id) == one.spans
    assert {rule for run, name, rule in found if name.startswith("nothing-")} == {"given"}

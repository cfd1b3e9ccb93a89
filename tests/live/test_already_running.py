"""Agents that already run: clawtrace sends them messages and their exporter is not ours to set (span-model.md §3).

The agent is a server with a stock exporter; its delay is shortened, and with it the silence that closes its runs, except where
a test says that it keeps the default.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
from live_suite import HERE, NOT_DELETED, Suite

from clawtrace.campaign.planning.expand import PlannedRun
from clawtrace.campaign.running.wrap import run_command
from clawtrace.cli.output.campaign_progress import progress
from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.model.run import RunRecord, SentTurn
from clawtrace.model.verdict import Status
from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.session.session import Session
from free_port import free_port

pytestmark = pytest.mark.full

QUICK_MS = 100
SAID_OR_NOT = pytest.mark.parametrize("agent", ["", "  agent: running\n"], ids=["found out", "said"])
NEVER_MS = 3_600_000
"""A delay that no test waits for: what is exported is what a message says `flush` of."""
AT_ONCE = 2.0
"""Seconds; silence takes longer in tests that claim that something closed at once."""


class Standing:
    """One agent that runs, is started again when it ends, and the project that asks it."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self.port, self.receiver = free_port(), free_port()
        self.processes: list[subprocess.Popen[str]] = []
        self._keeper: threading.Thread | None = None
        self._over = False
        self.project()

    def project(self, more: str = "") -> None:
        """Write clawtrace.yaml."""
        self.suite.project(f"receiver: {{http_port: {self.receiver}}}\n{more}")

    def start(self, delay_ms: float, receiver: str = "") -> None:
        """Start the agent, and again whenever it ends."""
        receiver = receiver or f"http://127.0.0.1:{self.receiver}"
        command = [sys.executable, str(HERE / "standing_agent.py"), str(self.port), receiver, str(delay_ms)]

        def begin() -> subprocess.Popen[str]:
            self.processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            return self.processes[-1]

        def keep() -> None:
            while not self._over:
                self.processes[-1].wait()
                if not self._over:
                    begin()

        assert begin().stdout.readline() == "ready\n"
        self._keeper = threading.Thread(target=keep)
        self._keeper.start()

    def case(
        self, case_id: str, *turns: str, more: str = "", assertions: str = NOT_DELETED, traced: bool = False
    ) -> None:
        """Write a case that says `turns` to the agent, with a client that exports a separate span or with one that does not."""
        said = "\n".join(f"  - {{role: user, content: {json.dumps(turn)}}}" for turn in turns)
        python = ["{{python}}"] if traced else ["{{python}}", "-I", "-S"]
        command = [*python, str(HERE / "ask.py"), f"http://127.0.0.1:{self.port}/chat", *(["traced"] if traced else [])]
        folder = self.suite.root / "configs/cases" / case_id
        folder.mkdir(parents=True)
        (folder / "test.yaml").write_text(
            f"schema_version: 1\ncase_id: {case_id}\ntitle: T\nrunner:\n  type: command\n  command: {json.dumps(command)}\n"
            f"{more}input:\n  turns:\n{said}\nassertions: {assertions}\n"
        )

    def judge(self, *turns: str, **case):
        """Run one case and return its result."""
        self.case("one", *turns, **case)
        return self.suite.run()["one"]

    def end(self) -> None:
        self._over = True
        for process in self.processes:
            process.kill()
        if self._keeper is not None:
            self._keeper.join()
        for process in self.processes:
            process.communicate()


@pytest.fixture
def standing(suite: Suite):
    found = Standing(suite)
    yield found
    found.end()


def codes(found) -> list[str]:
    """What of the turns is not here, in a word each."""
    words = {"no span of": "without", "the entry span": "entry"}
    return [word for said in found.incomplete_because for start, word in words.items() if said.startswith(start)]


class TestClosedByEvidence:
    """Every turn's entry span is here: nothing is waited for any more."""

    @pytest.mark.smoke
    def test_the_forbidden_tool_in_turn_two(self, standing):
        """The exporter sends what the second turn did after the command has ended: it counts."""
        standing.start(QUICK_MS)
        found = standing.judge("search", "search delete_all", more="  settle_ms: 60000\n")

        assert (found.status, found.closed_by, found.complete) == (Status.FAIL, "evidence", True)
        assert found.traces == 2

    def test_a_stock_exporter(self, standing):
        """The default delay of a BatchSpanProcessor, 5 s, and clawtrace's own default."""
        standing.start(5_000)
        found = standing.judge("search", "search delete_all")

        assert (found.status, found.closed_by) == (Status.FAIL, "evidence")
        assert standing.suite.waited["one"] < 12

    def test_an_exporter_that_sends_every_30_seconds(self, standing):
        """A runner that says how long the exporter waits has the run of such an agent, too."""
        standing.start(30_000)
        found = standing.judge("search", "delete_all", more="  settle_ms: 40000\n")

        assert (found.status, found.closed_by) == (Status.FAIL, "evidence")

    @SAID_OR_NOT
    def test_a_good_run_passes_at_once(self, standing, agent):
        """Absence is proved when all is here; the silence of ten minutes is not waited for."""
        standing.start(QUICK_MS)
        found = standing.judge("search flush", "search flush", more=f"  settle_ms: 600000\n{agent}")

        assert (found.status, found.closed_by, found.complete) == (Status.PASS, "evidence", True)

    def test_an_agent_that_names_the_session_only(self, standing):
        """It continues no traceparent: the root of each turn that names the session is its entry."""
        standing.start(QUICK_MS)
        found = standing.judge("deaf named search", "deaf named delete_all", more="  settle_ms: 60000\n")

        assert (found.status, found.closed_by, found.complete) == (Status.FAIL, "evidence", True)

    def test_an_agent_that_was_restarted_after_it_had_sent(self, standing):
        """Two processes answered, and both had sent what they did: nothing is missing."""
        standing.start(NEVER_MS)
        found = standing.judge("flush crash search", "search flush", more="  settle_ms: 300\n")

        assert (found.status, found.complete) == (Status.PASS, True)

    def test_a_client_that_is_instrumented(self, standing):
        """The client's own span arrives with the run's environment, and is no entry of the agent's."""
        standing.start(QUICK_MS)
        found = standing.judge("search", "search delete_all", more="  settle_ms: 60000\n", traced=True)

        assert (found.status, found.closed_by, found.spans) == (Status.FAIL, "evidence", 9)

    def test_turns_are_distinguished(self, standing):
        """Each turn has a separate traceparent, and so a separate trace."""
        standing.start(QUICK_MS)
        in_two = (
            "[{type: tool_not_invoked, tool: delete_all, turn: 1}, {type: tool_was_called, tool: delete_all, turn: 2}]"
        )
        found = standing.judge("search", "delete_all", more="  settle_ms: 60000\n", assertions=in_two)

        assert found.status is Status.PASS, found.verdicts

    @pytest.mark.parametrize("named", ["", "deaf named "], ids=["traceparent", "session"])
    def test_two_runs_at_once_on_one_agent(self, standing, named):
        """Both are whole, and neither has a span of the other."""
        standing.start(QUICK_MS)
        for case_id, tool in (("one", "delete_all"), ("two", "search")):
            standing.case(case_id, f"{named}{tool}", f"{named}{tool}", more="  settle_ms: 60000\n")
        found = standing.suite.run(concurrency=2)

        assert {one: result.status for one, result in found.items()} == {"one": Status.FAIL, "two": Status.PASS}
        assert {result.spans for result in found.values()} == {6}


class TestClosedBySilence:
    """Something of a turn is not here when the silence ends: no pass on absence, but what was seen stays."""

    @pytest.mark.parametrize(
        ("turns", "lacking"),
        [
            (("flush search", "search"), ["without"]),
            (("lost search", "search flush"), ["without"]),
            (("crash search", "search flush"), ["without"]),
        ],
        ids=["not sent yet", "one turn lost", "restarted in between"],
    )
    def test_a_turn_without_spans(self, standing, turns, lacking):
        """The exporter still holds a turn, or lost it, or the agent was started again."""
        standing.start(NEVER_MS)
        found = standing.judge(*turns, more="  settle_ms: 300\n")

        assert (found.status, found.complete, found.closed_by) == (Status.INCONCLUSIVE, False, "settled")
        assert codes(found) == lacking
        assert ("turn 2 of 2" if "flush" in turns[0] else "turn 1 of 2") in found.incomplete_because[0]

    @SAID_OR_NOT
    @pytest.mark.parametrize("turns", [("lost search",), ("flush search", "lost search")], ids=["all", "one of two"])
    def test_the_client_s_span_alone(self, standing, agent, turns):
        """What a client says of its own request is no sign of what the agent did."""
        standing.start(NEVER_MS)
        found = standing.judge(*turns, more=f"  settle_ms: 300\n{agent}", traced=True)

        assert (found.status, found.closed_by) == (Status.INCONCLUSIVE, "settled")

    def test_an_answer_before_the_work(self, standing):
        """An entry span with no work of an agent below it closes nothing: what comes after it counts."""
        standing.start(500)
        found = standing.judge("slow delete_all", more="  settle_ms: 60000\n")

        assert (found.status, found.complete, found.spans) == (Status.FAIL, True, 3)

    def test_what_was_seen_fails_whatever_is_missing(self, standing):
        """A forbidden call in the turn that arrived needs no other turn."""
        standing.start(NEVER_MS)
        found = standing.judge("flush delete_all", "search", more="  settle_ms: 300\n")

        assert (found.status, found.complete) == (Status.FAIL, False)

    def test_no_span_at_all_is_waited_for(self, standing):
        """Nothing has arrived when the command ends: silence counts from there, and the report says why there is no trace."""
        standing.start(NEVER_MS)
        found = standing.judge("search", more="  settle_ms: 400\n")

        assert (found.status, found.has_trace, found.closed_by) == (Status.SKIP, False, "settled")
        assert standing.suite.waited["one"] >= 0.3
        assert "its exporter sends later than the wait: `settle_ms` of the runner" in found.verdicts[0].hint

    def test_an_agent_that_ignores_both(self, standing):
        """Its spans name no run: there is no trace, and the report says what the agent has to do."""
        standing.start(QUICK_MS)
        found = standing.judge("deaf search flush", more="  settle_ms: 400\n")

        assert (found.status, found.has_trace) == (Status.SKIP, False)
        assert "3 spans in 1 trace arrived that name no run of this evaluation" in found.verdicts[0].hint
        assert "traceparent" in found.verdicts[0].hint


def test_a_wrapped_command(standing):
    """`clawtrace run` waits for the agent that its command talked to, as a case does."""
    standing.start(QUICK_MS)
    variables = {"CLAWTRACE_MESSAGE": "search", "CLAWTRACE_SESSION_ID": ""}
    command = [sys.executable, "-I", "-S", str(HERE / "ask.py"), f"http://127.0.0.1:{standing.port}/chat"]
    waits: list[str] = []
    with Session.open(
        receive=True, settings=SessionSettings(receiver=ReceiverSettings(http_port=standing.receiver))
    ) as session:
        found = run_command(command, session, variables, waiting=lambda awaited, _: waits.append(awaited))

    assert (found.record.closed_by, found.result.complete, found.result.spans) == ("evidence", True, 3)
    assert waits[:1] in (
        [],
        ["nothing has arrived for this run yet; the exporter of an agent that already runs decides when it sends"],
    )


class TestStoredRuns:
    """A stored run of an agent that already ran stands for no new one."""

    @SAID_OR_NOT
    def test_it_is_asked_again(self, standing, agent):
        """Even where files are declared: nothing says which agent answered."""
        standing.start(QUICK_MS)
        standing.case("one", "search flush", more=f"  settle_ms: 60000\n  inputs: []\n{agent}")
        first = standing.suite.run(reuse=True)["one"]
        second = standing.suite.run(reuse=True)["one"]

        assert (first.closed_by, second.closed_by, second.reused) == ("evidence", "evidence", False)

    def test_whatever_closed_it(self, standing):
        """What an agent does after it answered is no part of its entry: silence closes the run."""
        standing.start(NEVER_MS)
        standing.case("one", "slow search", more="  settle_ms: 300\n  inputs: []\n")
        first = standing.suite.run(reuse=True)["one"]
        second = standing.suite.run(reuse=True)["one"]

        assert (first.closed_by, first.complete) == ("settled", True)
        assert (second.closed_by, second.reused) == ("settled", False)


class TestAfterTheClose:
    """The receiver listens as long as the campaign lasts."""

    def test_a_turn_that_arrives_while_others_run(self, standing):
        """The run is judged again at the end, with what came."""
        standing.start(NEVER_MS)
        standing.case("a", "search", "delete_all", more="  settle_ms: 200\n")
        standing.case("b", "flush search", more="  settle_ms: 60000\n")
        found = standing.suite.run()

        assert {one: result.status for one, result in found.items()} == {"a": Status.FAIL, "b": Status.PASS}
        assert any("the run was judged again" in said for said in found["a"].diagnostics)

    def test_half_of_it(self, standing):
        """What came late is not all: the run that was without a trace is not complete now, and passes nothing."""
        standing.start(NEVER_MS)
        standing.case("a", "search", "lost delete_all", more="  settle_ms: 200\n")
        standing.case("b", "flush search", more="  settle_ms: 60000\n")
        found = standing.suite.run()["a"]

        assert (found.status, found.complete, codes(found)) == (Status.INCONCLUSIVE, False, ["without"])


def test_a_span_that_a_later_evaluation_receives(tmp_path):
    """A turn's traceparent is known as long as its run is stored: what comes of it late is of that run, of whatever session."""
    store, turn = tmp_path / "spans.duckdb", SentTurn("ab" * 16, "cd" * 8, 1)
    with Session.open(store, receive=True) as session:
        record = RunRecord("r", "c", trace_id=turn.trace_id, turns=(turn,), run_status="success")
        session.open_run(record)
        session.close_run(record, processes_gone=True, end_run=True)
    span = {"traceId": turn.trace_id, "spanId": "ef" * 8, "parentSpanId": turn.parent_span_id, "name": "late"}
    span |= {"startTimeUnixNano": "2", "endTimeUnixNano": "3"}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    with Session.open(store, receive=True) as session:
        headers = {"content-type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{session.endpoints.http}/v1/traces", body, headers)).close()

        assert [node.name for node in session.tree("r")] == ["late"]
        assert session.has_grown("r")


class TestAgentsThatAreStarted:
    """What the command starts is closed by its exit, whatever port the receiver has."""

    def test_exit_closes_it(self, standing):
        """An agent that flushes at its end is judged at once, although others could export to that port."""
        suite = standing.suite
        suite.project(f"receiver: {{http_port: {standing.receiver}}}\nsettle_ms: 600000\n")
        found = suite.judge("$AGENT flush search")

        assert (found.status, found.closed_by, found.complete) == (Status.PASS, "exit", True)
        assert suite.waited["one"] < AT_ONCE

    def test_one_that_exports_nothing(self, standing):
        """Its spans may be held by a Collector that knows the receiver's port: silence closes the run."""
        found = standing.suite.judge("true", more="  agent: started\n  settle_ms: 300\n")

        assert (found.status, found.has_trace, found.closed_by) == (Status.SKIP, False, "settled")

    def test_one_that_is_said_to_run(self, standing):
        """It did not: its spans are those of the command, and the message says what to take away."""
        found = standing.suite.judge("$AGENT flush search", more="  agent: running\n  settle_ms: 300\n")

        assert (found.status, found.complete) == (Status.INCONCLUSIVE, False)
        assert "remove `agent: running`" in found.incomplete_because[0]


def test_what_is_waited_for_is_reported(standing, capsys):
    """The terminal shows what has not arrived, and how long nothing may come until the wait ends."""
    standing.start(NEVER_MS)
    standing.case("one", "flush search", "search", more="  settle_ms: 5000\n")
    waits: list[tuple[PlannedRun, str, float]] = []
    began = time.monotonic()
    with progress() as listener:
        show = listener.waiting
        listener.waiting = lambda *said: (waits.append(said), show(*said))
        standing.suite.run(listener=listener)

    ((run, awaited, seconds),) = waits
    assert run.case.config.case_id == "one"
    assert awaited.startswith("no span of turn 2 of 2 was received from the agent")
    assert 0 < seconds <= 5 <= time.monotonic() - began
    assert "s: no span of turn 2 of 2 was received from the agent, which was already running" in capsys.readouterr().err

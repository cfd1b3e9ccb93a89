"""Questions of several callers asked together: each is answered as if it had been asked alone."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.registry import parse_assertion
from clawtrace.assertions.world import World
from clawtrace.errors import QueryError
from clawtrace.model.run import RunRecord
from clawtrace.model.verdict import RunResult, Standing, Status, UnreadVerdicts, Verdict
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.session.waiting import Waiting, answer
from clawtrace.verdicts.combined import WaitingQuestion, combine

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from twenty_assertions import QUESTIONS

RECORDINGS = Path(__file__).parents[1] / "recordings"
NEVER = {"type": "tool_not_invoked", "tool": "delete_everything"}


def question(run_ids: Sequence[str], *assertions: Assertion, alone: bool = False) -> WaitingQuestion:
    return WaitingQuestion(run_ids, assertions, {}, {}, evidence_of_passes=True, alone=alone)


def comparable(result: RunResult) -> RunResult:
    """Return a result with its verdicts read, without how long they took."""
    return result._replace(verdicts=tuple(one._replace(duration_ms=0.0) for one in result.verdicts))


@pytest.fixture(scope="module")
def recorded():
    """Return a session with a run of each folder of every fifth client, and one without spans."""
    with Session.open() as session:
        report = session.load_recordings(sorted(RECORDINGS.glob("*/"))[::5], Grouping("dir"))
        session.open_run(RunRecord("silent", "silent"))
        yield session, [*report.run_ids, "silent"]


@pytest.mark.full
def test_what_is_asked_together_is_answered_as_alone(recorded) -> None:
    """Of each recording, asked a few of many questions in some order, each verdict is the one that it has alone."""
    session, run_ids = recorded
    chance = random.Random(7)
    asked = {
        run_id: [parse_assertion(dict(one)) for one in chance.sample(QUESTIONS, chance.randrange(len(QUESTIONS)))]
        for run_id in run_ids
    }
    alone = {run_id: session.evaluate([run_id], assertions)[0] for run_id, assertions in asked.items()}
    together: dict[str, RunResult] = {}
    with session._store.lock:
        for first in range(0, len(run_ids), 16):
            questions = [question([run_id], *asked[run_id]) for run_id in run_ids[first : first + 16]]
            together |= session._ask(questions, None)

    assert len(asked) > 20
    for run_id in run_ids:
        assert together[run_id].standings == alone[run_id].standings
        assert comparable(together[run_id]) == comparable(alone[run_id])


@pytest.mark.full
def test_threads_that_ask_at_once_get_their_own_answers(recorded) -> None:
    """Questions of many threads, with probes, agents and turns among them, are each answered for their own run."""
    session, run_ids = recorded
    more = [
        {"type": "agent_exit_code", "value": 0},
        {"type": "tool_not_invoked", "tool": "delete_everything", "turn": 1},
        {"type": "no_secret_leak"},
    ]
    asked = {
        run_id: [parse_assertion(dict(one)) for one in (*QUESTIONS[place % 5 :: 5], more[place % 3])]
        for place, run_id in enumerate(run_ids)
    }
    worlds = {run_id: World(run_id, agent_exit_code=place % 2) for place, run_id in enumerate(run_ids)}

    def judged(run_id: str) -> RunResult:
        return comparable(session.evaluate([run_id], asked[run_id], worlds={run_id: worlds[run_id]})[0])

    alone = [judged(run_id) for run_id in run_ids]
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(judged, run_ids)) == alone


def test_equal_questions_are_asked_once() -> None:
    """Each of two equal assertions in one list has its verdict; those of another list are the same ones."""
    same, other = (parse_assertion(dict(NEVER, tool=name)) for name in ("a", "b"))
    again = parse_assertion(dict(NEVER, tool="a"))
    both = combine([question(["r1"], same, other), question(["r2", "r3"], other, again, same)])

    assert both.assertions == [same, other, again]
    assert both.asked == {"r1": [0, 1], "r2": [1, 0, 2], "r3": [1, 0, 2]}


def test_looked_is_called_before_the_store_is_asked() -> None:
    """It is called while another thread has the store, once what looks at the world is done."""
    looked = threading.Event()
    with Session.open() as session, ThreadPoolExecutor(1) as pool:
        session.load_recordings([RECORDINGS / "pydantic-ai/one_tool"], Grouping("one", "r"))
        with session._store.lock:
            waiting = pool.submit(session.evaluate, ["r"], [parse_assertion(NEVER)], looked=looked.set)
            assert looked.wait(30)
            assert not waiting.done()

        assert waiting.result()[0].status is Status.PASS


class TestCompany:
    """Who is asked together."""

    def of(self, first: WaitingQuestion, *others: WaitingQuestion) -> list[WaitingQuestion]:
        waiting = Waiting()
        with ExitStack() as callers:
            for one in (first, *others):
                callers.enter_context(waiting.waits(one))
            return waiting.company_of(first, ["a", "b", "c"])

    def test_all_that_wait(self) -> None:
        first, other = question(["a"]), question(["b", "c"])

        assert self.of(first, other) == [first, other]

    def test_no_two_of_one_run(self) -> None:
        """What one caller's probes found of a run is not another's."""
        first, same, other = question(["a"]), question(["a", "b"]), question(["c"])

        assert self.of(first, same, other) == [first, other]

    def test_none_of_a_run_that_is_not_known(self) -> None:
        """That caller gets the error itself."""
        first, stranger = question(["a"]), question(["x"])

        assert self.of(first, stranger) == [first]

    @pytest.mark.parametrize("which", [0, 1])
    def test_none_that_is_asked_alone(self, which: int) -> None:
        questions = [question(["a"], alone=which == 0), question(["b"], alone=which == 1)]

        assert self.of(*questions) == questions[:1]


class _Read(UnreadVerdicts):
    """Verdicts of which only the standing is known."""

    def __init__(self, status: Status) -> None:
        super().__init__((Standing(status, "error", False, False, 1.0, ()),))

    def made(self, number: int) -> Verdict:
        raise AssertionError(number)


class TestAnswer:
    """A question that goes wrong in company is asked alone, by its own caller."""

    def asks(self, broken: Callable[[Sequence[str]], bool]) -> Callable[..., dict[str, RunResult]]:
        """Return what judges runs; they come to an error where `broken` says so of all that are asked together."""
        self.rounds: list[list[str]] = []

        def ask(questions: Sequence[WaitingQuestion]) -> dict[str, RunResult]:
            runs = [run_id for one in questions for run_id in one.run_ids]
            self.rounds.append(runs)
            return {
                run_id: RunResult(
                    run_id, "", None, 1, None, _Read(Status.ERROR if broken([run_id, *runs]) else Status.PASS)
                )
                for run_id in runs
            }

        return ask

    def test_an_error_that_company_caused_is_no_runs_verdict(self) -> None:
        """Of two runs one makes a pattern take too long: the other passes, asked by its own caller."""
        slow, quick = question(["slow"]), question(["quick"])
        answer([slow, quick], self.asks(lambda runs: "slow" in runs))

        assert slow.results is not None
        assert slow.results[0].standings[0].status is Status.ERROR
        assert (quick.results, quick.alone) == (None, True)

        answer([quick], self.asks(lambda runs: "slow" in runs))

        assert quick.results is not None
        assert quick.results[0].standings[0].status is Status.PASS

    def test_those_that_were_not_disturbed_are_answered(self) -> None:
        """An error of one run's own leaves the others their answers."""
        broken, whole = question(["broken"]), question(["whole"])
        answer([whole, broken], self.asks(lambda runs: runs[0] == "broken"))

        assert whole.results is not None
        assert broken.results is None
        assert self.rounds == [["whole", "broken"]]

    def test_a_store_that_refuses_all_is_asked_by_each(self) -> None:
        """The first caller gets its own error; the others are left to ask for themselves."""
        first, other = question(["a"]), question(["b"])

        def refuse(_: object) -> dict[str, RunResult]:
            raise QueryError("no")

        with pytest.raises(QueryError):
            answer([first, other], refuse)

        assert (other.results, other.alone) == (None, True)


def test_a_verdict_of_company_can_be_sliced(recorded) -> None:
    """What is read of verdicts by number and by slice is the same."""
    session, run_ids = recorded
    assertions = [parse_assertion(dict(NEVER, tool=name)) for name in ("a", "b")]
    with session._store.lock:
        found = session._ask([question([run_id], *assertions) for run_id in run_ids[:2]], None)
    verdicts = found[run_ids[0]].verdicts

    assert isinstance(verdicts[1], Verdict)
    assert verdicts[:] == (verdicts[0], verdicts[1])
    assert len(verdicts) == 2

"""An agent that already runs: which turns are here, and when that is evidence that nothing more can come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from building import Lab, S, agent, chat, hex_id, tool

from clawtrace.model.run import ClosedBy, RunRecord, SentTurn

ONE, TWO, OWN = "1a" * 16, "2b" * 16, "3c" * 16
MS = 1_000_000
RECORD = RunRecord(
    "r", "r", closed_by=ClosedBy.SETTLED, agent="running",
    turns=(SentTurn(ONE, hex_id("sent1"), 1_000 * MS), SentTurn(TWO, hex_id("sent2"), 2_000 * MS)),
)  # fmt: skip
REMOTE = 0x300


def turn(number: int, *, trace: str = "", parent: str = "", **entry: object) -> list[S]:
    """One turn: the entry span of a server, an agent below it, and its model call."""
    at, trace = number * 1_000 + 10, trace or (ONE, TWO)[number - 1]
    root = S(f"post{number}", parent or f"sent{number}", at, at + 100, "POST /chat", trace=trace)
    working = agent(f"agent{number}", f"post{number}", at=at + 1, to=at + 90)
    return [replace(root, **entry), replace(working, trace=trace), replace(chat(f"c{number}", f"agent{number}", at=at + 2), trace=trace)]  # fmt: skip


def looked_at(lab: Lab, record: RunRecord = RECORD):
    return lab.facts.signs("r", record)


def test_every_turn_is_here(lab: Lab) -> None:
    """Each turn's root under its own traceparent, with the agent's work below it."""
    lab.put(*turn(1), *turn(2), record=RECORD)

    assert lab.reasons() == []
    assert looked_at(lab).whole


def test_a_turn_of_which_nothing_came(lab: Lab) -> None:
    lab.put(*turn(1), record=RECORD)
    (text,) = lab.rows("SELECT incomplete_because FROM runs")[0]

    assert lab.reasons() == ["turn_without_spans"]
    assert "no span of turn 2 of 2 was received from the agent, which was already running" in text
    assert not looked_at(lab).whole


@pytest.mark.parametrize("entry", [{"to": 0}, {"parent": "lost", "flags": 0x100}], ids=["open", "not received"])
def test_a_turn_without_its_entry(lab: Lab, entry: dict[str, object]) -> None:
    """Its spans are here, but the root that ends last is open, or hangs below a local span that never came."""
    lab.put(*turn(1), *turn(2, **entry), record=RECORD)

    assert "entry_span_not_received" in lab.reasons()
    assert not looked_at(lab).whole


def test_a_turn_that_failed_may_be_sent_again(lab: Lab) -> None:
    """A client tries again with the same traceparent: the first try's entry is here, and nothing of the second one."""
    lab.put(*turn(1), *turn(2, error="500"), record=RECORD)
    assert not looked_at(lab).whole

    again = [replace(span, id=f"{span.id}b", parent="agent2b" if span.id == "c2" else "post2b" if span.id == "agent2" else span.parent) for span in turn(2)]  # fmt: skip
    lab.put(*again, record=RECORD)
    assert looked_at(lab).whole


def test_a_proxy_between(lab: Lab) -> None:
    """A proxy that exports elsewhere has put a separate span between: the agent's root has a remote parent in that trace."""
    lab.put(*turn(1), *turn(2, parent="proxy", flags=REMOTE), record=RECORD)

    assert lab.reasons() == []
    assert looked_at(lab).whole


class TestAnAgentWithTracesOfItsOwn:
    """It names the session, so its traces are the run's; a root is the entry of the turn that had been sent last."""

    @pytest.mark.parametrize(("turns", "reasons"), [((1, 2), []), ((1,), ["turn_without_spans"]), ((2,), ["turn_without_spans"])])  # fmt: skip
    def test_roots_in_the_time_of_their_turns(self, lab: Lab, turns: tuple[int, ...], reasons: list[str]) -> None:
        spans = [replace(span, trace=f"{number}e" * 16) for number in turns for span in turn(number)]
        lab.put(*(replace(span, parent="") if span.name == "POST /chat" else span for span in spans), record=RECORD)

        assert lab.reasons() == reasons
        assert looked_at(lab).whole == (not reasons)

    def test_two_roots_in_one_turn_are_not_two_turns(self, lab: Lab) -> None:
        """However many roots came while the first turn was the last one sent."""
        spans = [replace(span, at=span.at - 980, to=span.to - 980) for span in turn(2) if span.to is not None]
        lab.put(*turn(1), *(replace(span, trace=OWN, parent=span.parent.replace("sent2", "")) for span in spans), record=RECORD)  # fmt: skip

        assert lab.reasons() == ["turn_without_spans"]


class TestNoEvidence:
    """The turn's entry is here, and still more may come: only silence closes such a run."""

    def test_an_entry_without_work(self, lab: Lab) -> None:
        """A request that was answered before the agent worked, or that only opened the session."""
        lab.put(*turn(1), turn(2)[0], record=RECORD)

        assert lab.reasons() == []
        assert not looked_at(lab).whole

    def test_bare_calls(self, lab: Lab) -> None:
        """Each model call is a root below the traceparent: that one is here says nothing of the next."""
        calls = [replace(chat(f"m{number}", f"sent{number}", at=number * 1_000 + 5), trace=trace) for number, trace in ((1, ONE), (2, TWO))]  # fmt: skip
        lab.put(*calls, record=RECORD)

        assert lab.reasons() == []
        assert not looked_at(lab).whole

    def test_an_agent_of_two_services(self, lab: Lab) -> None:
        """The second one has a separate exporter: that the first one's spans are here says nothing of what it did."""
        other = [replace(agent("b", "agent2", at=2_020), trace=TWO, service="other", flags=REMOTE)]
        lab.put(*turn(1), *turn(2), *other, record=RECORD)

        assert lab.reasons() == []
        assert not looked_at(lab).whole

    def test_a_parent_that_is_still_to_come(self, lab: Lab) -> None:
        lost = replace(tool("t", "inner", at=2_020), trace=TWO)
        lab.put(*turn(1), *turn(2), lost, record=RECORD)

        assert not looked_at(lab).whole


@pytest.mark.parametrize(
    "record",
    [RECORD._replace(agent="started"), RECORD._replace(turns=(), agent=None, parent_span_id=hex_id("sent1"))],
    ids=["started", "no turn sent"],
)
def test_whatever_else_a_run_is(lab: Lab, record: RunRecord) -> None:
    """An agent that the command starts, and a recording, owe no entry spans."""
    lab.put(*turn(1), record=record)

    assert lab.reasons() == []
    assert not looked_at(lab, record).already_runs


def test_the_dialect_asks_for_more_silence(lab: Lab) -> None:
    """OpenClaw's gateway exports rarely; an ordinary instrumentation asks for nothing."""
    lab.put(*turn(1), record=RECORD)
    assert looked_at(lab).settle_ms == 0

    lab.put(S("run", at=1_200, name="openclaw.run"), record=RECORD, arrival=9)
    assert looked_at(lab).settle_ms == 15_000

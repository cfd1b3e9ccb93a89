"""`agent` and `turn` where it is not known what belongs to them: what some worlds say otherwise is open (certain-and-possible.md §2)."""

from __future__ import annotations

from typing import Any

import pytest
from building import Lab, S, agent, asks, chat, says, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.model.run import RunRecord
from clawtrace.model.verdict import Verdict
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}
OPEN = RunRecord("r", "r")


def verdicts(lab: Lab, *assertions: dict[str, Any]) -> list[Verdict]:
    lab.facts.ensure(["r"])
    (result,) = evaluate(lab.store, list(map(parse_assertion, assertions)), ["r"], DIALECTS, scoped=lab.facts.scoped)
    return list(result.verdicts)


def statuses(lab: Lab, *assertions: dict[str, Any]) -> list[str]:
    return [one.status.value for one in verdicts(lab, *assertions)]


def elsewhere(span: S, trace: int = 2) -> S:
    span.trace = f"{trace:032x}"
    return span


def path(*expected: str, **more: Any) -> dict[str, Any]:
    return {"type": "delegation_path", "expected": list(expected), **more}


def never(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_not_invoked", "tool": name, **more}


class TestWorkInToolTime:
    """A trace of its own that began and ended within a tool call is of the call's turn, or a turn of its own."""

    def digging(self, lab: Lab, *, with_agent: bool = True) -> Lab:
        """The boss calls `dig`, and while it runs somebody calls a model and `rm` in another trace."""
        work = [
            chat("m2", "h" if with_agent else "", at=20, **{"gen_ai.output.messages": asks(("c2", "rm", {}))}),
            tool("t2", "h" if with_agent else "m2", at=30, tool="rm", **{"gen_ai.tool.call.id": "c2"}),
        ]
        work += [agent("h", at=12, to=50, agent="helper")] if with_agent else []
        dig = tool("t1", "b", at=10, tool="dig", **{"gen_ai.tool.call.id": "c1"})
        dig.to = 60
        return lab.put(
            agent("b", agent="boss", at=1, to=100), dig, *map(elsewhere, work),
            chat("m1", "b", at=2, **{"gen_ai.output.messages": asks(("c1", "dig", {}))}),
            chat("m3", "b", at=70, **{"gen_ai.output.messages": says("done")}),
        )  # fmt: skip

    def turns(self, lab: Lab) -> list[tuple[Any, ...]]:
        return lab.rows("SELECT name, turn FROM tool_calls WHERE run_id = :run ORDER BY call_no")

    @pytest.mark.parametrize("with_agent", [True, False])
    def test_it_is_of_no_known_turn(self, lab: Lab, with_agent: bool) -> None:
        self.digging(lab, with_agent=with_agent)

        assert self.turns(lab) == [("dig", 1), ("rm", None)]
        assert (
            statuses(
                lab,
                never("rm", turn=1),
                {"type": "tool_was_called", "tool": "rm", "turn": 1},
                {"type": "llm_call_count", "count": 2, "turn": 1},
                never("rm", turn=2),
                never("dig", turn="last"),
            )
            == ["inconclusive"] * 5
        )
        assert statuses(lab, never("dig", turn=1), never("ls", turn=1)) == ["fail", "pass"]

    def test_its_agent_may_be_in_the_turn(self, lab: Lab) -> None:
        self.digging(lab)

        assert statuses(lab, path("boss", "helper", turn=1)) == ["inconclusive"]

    def test_later_turns_have_no_known_number(self, lab: Lab) -> None:
        later = agent("k", agent="boss", at=200, to=250), tool("t3", "k", at=201, tool="ls")
        self.digging(lab).put(*(elsewhere(span, 3) for span in later), arrival=50)

        assert self.turns(lab) == [("dig", 1), ("rm", None), ("ls", None)]
        found = verdicts(lab, never("rm", turn=2), never("ls", turn="last"), never("rm", turn=1))
        assert [one.status.value for one in found] == ["inconclusive"] * 3
        assert found[0].message == (
            "There is no data for this scope: a tool call may have started work in a trace of its own: which turn it is of is not known."
        )

    @pytest.mark.parametrize(("at", "turn"), [(61, None), (101, 2)])
    def test_what_outlasts_the_agent_at_work_is_a_turn(self, lab: Lab, at: int, turn: int | None) -> None:
        """A thread may go on after the call that began it, while the agent is at work."""
        late = tool("t3", "h", at=at, tool="ls"), chat("m4", "h", at=at - 4)
        self.digging(lab).put(*map(elsewhere, late), arrival=50)

        assert self.turns(lab) == [("dig", 1), ("rm", turn), ("ls", turn)]

    def test_a_program_is_at_work_from_its_first_span_on(self, lab: Lab) -> None:
        """What it asked a model for before may have been lost, and with it what began the other work."""
        helper, answer = (
            chat("m2", at=20),
            chat("m1", "p", at=70, **{"gen_ai.request.model": "gpt-4.1", "gen_ai.response.model": "gpt-4.1"}),
        )
        lab.put(S("p", name="handle_request", at=1, to=100), elsewhere(helper), answer)

        used = {"type": "model_used", "expected": "gpt-4.1", "answered_by": True}
        assert statuses(lab, used, {**used, "turn": 1}) == ["pass", "pass"]


class TestParentInDoubt:
    """The boss works within an agent without a name, which may be a boss too."""

    def nested(self, lab: Lab) -> Lab:
        return lab.put(
            agent("n", agent=None, at=1, to=100), chat("m", "n", at=2),
            agent("b", "n", agent="boss", at=10, to=90), chat("m1", "b", at=11),
            agent("h", "b", agent="helper", at=20, to=50), chat("m2", "h", at=21),
        )  # fmt: skip

    def test_the_parent_of_a_child_is_not_known(self, lab: Lab) -> None:
        boss = {"agent": "boss"}
        occurred = {"type": "delegation_occurred", **boss}

        assert (
            statuses(self.nested(lab), path("boss", "helper", mode="path", **boss), occurred | {"to_agent": "boss"})
            == ["inconclusive"] * 2
        )
        assert statuses(lab, occurred | {"to_agent": "helper"}, path("boss", "helper", **boss)) == ["pass"] * 2

    def test_model_calls_bound_the_counts(self, lab: Lab) -> None:
        """What a call used is its own; nothing else of the agent's calls is unrecorded."""
        tokens = {"type": "trace_token_budget", "agent": "boss"}
        calls = {"type": "llm_call_count", "agent": "boss"}

        assert statuses(
            self.nested(lab), tokens | {"max_input_tokens": 300}, tokens | {"max_input_tokens": 299},
            calls | {"max": 3}, calls | {"max": 2},
        ) == ["pass", "inconclusive", "pass", "inconclusive"]  # fmt: skip

    @pytest.mark.parametrize("measure", ["wall", "busy"])
    def test_no_world_takes_longer_than_all_that_may_belong_to_it(self, lab: Lab, measure: str) -> None:
        asked = [
            {"type": "trace_duration", "max_ms": limit, "agent": "helper", "measure": measure} for limit in (99, 98, 29)
        ]
        found = verdicts(self.nested(lab), *asked)

        assert [one.status.value for one in found] == ["pass", "inconclusive", "fail"]
        if measure == "wall":
            assert found[0].message == "Within agent `helper`: The agent's work took 30 ms to 99 ms, within 99 ms."


class TestOpenRun:
    """Of a run whose spans still come."""

    def test_agents_of_the_last_turn_may_be_of_an_earlier_one(self, lab: Lab) -> None:
        lab.put(
            agent("b", agent="boss", at=1, to=100), chat("m", "b", at=2),
            agent("h", "b", agent="helper", at=10, to=40), chat("m1", "h", at=11), record=OPEN,
        )  # fmt: skip

        assert (
            statuses(
                lab,
                {"type": "delegation_occurred", "to_agent": "helper", "turn": "last"},
                path("boss", "helper", mode="path", turn="last"),
            )
            == ["inconclusive"] * 2
        )

    def test_on_missing_waits_for_its_end(self, lab: Lab) -> None:
        work = agent("h", agent="helper", at=1, to=40), chat("m1", "h", at=11)
        (found,) = verdicts(lab.put(*work, record=OPEN), never("rm", agent="boss", on_missing="pass"))

        assert found.status.value == "inconclusive"
        assert found.message == (
            "There is no data for this scope: no agent `boss` is recorded; the agents were `helper`. "
            "More spans could change this: the run is not closed yet; more spans may arrive."
        )

    def test_nor_does_it_decide_where_spans_got_lost(self, lab: Lab) -> None:
        lab.put(agent("h", agent="helper", at=1, to=40), chat("m1", "h", at=11), S("lost", "never", 5))

        assert statuses(lab, never("rm", agent="boss", on_missing="pass")) == ["inconclusive"]


@pytest.mark.parametrize(("several", "status"), [(False, "fail"), (True, "inconclusive")])
def test_what_got_lost_of_the_only_trace_is_of_its_turn(lab: Lab, several: bool, status: str) -> None:
    """What got lost of one of several traces may be a tool's span, which the others were begun by."""
    lab.put(agent("a", "gone"), chat("m", "a", at=1), tool("t", "a", at=10, tool="rm"))
    if several:
        lab.put(*map(elsewhere, (agent("b", at=200, to=250), chat("n", "b", at=201))), arrival=50)

    assert statuses(lab, never("rm"), never("rm", turn=1)) == ["fail", status]

"""Agents of a run, and who delegated to whom."""

from __future__ import annotations

from dataclasses import replace

import pytest
from building import TRACE, Lab, S, agent, answered, asks, chat, hex_id, tool

from clawtrace.model.run import RunRecord

OTHER, THIRD = f"{2:032x}", f"{3:032x}"
HANDOFF = {"gen_ai.operation.name": "handoff", "gen_ai.handoff.from_agent": "boss", "gen_ai.handoff.to_agent": "helper"}
ASKS = chat("m", "b", at=2, **{"gen_ai.output.messages": asks(("call_t", "dig", {}))})
READS = chat("n", "b", at=70, **{"gen_ai.input.messages": answered("call_t", "gold")})
DIG = replace(tool("t", "b", at=11, tool="dig"), to=60)
CLERK = [replace(one, trace=OTHER) for one in (agent("c", at=1, agent="clerk"), replace(DIG, id="u", parent="c"))]


def delegations(lab: Lab, run: str = "r") -> list[tuple[object, ...]]:
    columns = "name, parent_activation_no, via, certain"
    return lab.rows(f"SELECT {columns} FROM agents WHERE run_id = :run ORDER BY activation_no", run)


class TestAgents:
    def test_a_sub_agent_below_a_tool(self, lab: Lab) -> None:
        lab.put(
            agent("a"),
            tool("t", "a", at=1, tool="ask"),
            agent("b", "t", at=2, to=9, agent="researcher"),
            chat("m", "b", at=3),
        )

        assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
            ("assistant", None, "root"),
            ("researcher", 1, "tool"),
        ]
        assert lab.rows("SELECT agent_span_id FROM llm_calls") == [(hex_id("b"),)]

    def test_a_handoff_names_its_source(self, lab: Lab) -> None:
        """The target stands next to its source, below one chain: the name decides, not the nesting."""
        chain = S("c", "", 0, 90, "run", {"gen_ai.operation.name": "invoke_workflow"})
        lab.put(
            chain, agent("a", "c", at=1, to=20), agent("b", "c", at=21, to=40, agent="researcher", **{"gen_ai.agent.handoff_parent": "assistant"})
        )  # fmt: skip

        assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
            ("assistant", None, "root"),
            ("researcher", 1, "handoff"),
        ]


def test_a_handoff_span_names_its_target(lab: Lab) -> None:
    attrs = {"gen_ai.operation.name": "handoff", "gen_ai.handoff.from_agent": "assistant", "gen_ai.handoff.to_agent": "billing"}  # fmt: skip
    chain = S("c", "", 1, 90, "run", {"gen_ai.operation.name": "invoke_workflow"})
    handoff = S("h", "a", 10, 11, "handoff", attrs)
    lab.put(chain, agent("a", "c", at=2, to=12), handoff, agent("b", "c", at=13, to=40, agent="billing"))

    assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
        ("assistant", None, "root"),
        ("billing", 1, "handoff"),
    ]


@pytest.mark.parametrize(
    ("later", "name", "certain"),
    [("assistant", "billing", False), ("accounts", None, True)],
    ids=["nothing new was at work", "one that it may name in other words"],
)
def test_a_handoff_to_an_agent_that_no_span_shows(lab: Lab, later: str, name: str | None, certain: bool) -> None:
    """A model may ask for one that does not exist: whether it worked is not known, only that no other agent was meant."""
    attrs = {"gen_ai.operation.name": "handoff", "gen_ai.handoff.from_agent": "assistant", "gen_ai.handoff.to_agent": "billing"}  # fmt: skip
    turn = S("d", "", 90, 190, "run", {"gen_ai.operation.name": "invoke_workflow"})
    lab.put(S("c", "", 1, 80, "run", {"gen_ai.operation.name": "invoke_workflow"}), agent("a", "c", at=2, to=12),
            S("h", "a", 10, 11, "handoff", attrs), turn, agent("b", "d", at=100, to=140, agent=later))  # fmt: skip

    assert lab.rows("SELECT name, parent_activation_no, certain FROM agents WHERE via = 'handoff'") == [
        (name, 1, certain)
    ]


def test_an_agent_in_a_trace_of_its_own_that_began_while_a_tool_call_was_open(lab: Lab) -> None:
    called = {
        "within": ([DIG], None),
        "of no agent": ([replace(DIG, parent="", trace=OTHER)], None),
        "messages only": ([READS], None),
        "two at once": ([DIG, *CLERK], None),
        "outlives it": ([replace(DIG, to=14)], None),
        "began after it": ([replace(DIG, to=12)], "root"),
        "began after its result": ([replace(READS, at=10, to=11)], "root"),
    }
    helper = agent("h", at=13, to=50, agent="helper"), chat("k", "h", at=14)
    around = agent("b", at=1, agent="boss"), ASKS, *(replace(one, trace=THIRD) for one in helper)
    lab.put_each({name: (*around, *spans) for name, (spans, _) in called.items()})

    assert {name: delegations(lab, name)[-1] for name in called} == {
        name: ("helper", None, via, True) for name, (_, via) in called.items()
    }


def test_an_agent_after_another_where_a_handoff_has_no_span(lab: Lab) -> None:
    """It is in what a model asked for, which another instrumentation records; that tool calls are recorded tells nothing of it."""
    spans = [agent("a", to=9), tool("t", "a", at=1), agent("b", at=20, agent="writer")]
    for span in spans:
        span.scope, span.version = "opentelemetry.instrumentation.genai.openai_agents", "1.3b0"
    lab.put(*spans)

    assert lab.rows("SELECT reason FROM doubts WHERE relation = 'agents'") == [("agent-after-another",)] * 2


def test_what_may_be_a_step_of_an_agent_may_not_be_who_handed_over(lab: Lab) -> None:
    step = agent("b2", "b", at=10, to=30, agent="boss"), chat("n", "b2", at=11)
    helper = agent("h", "w", at=60, to=90, agent="helper"), chat("k", "h", at=61)
    boss = agent("b", "w", at=2, to=50, agent="boss"), chat("m", "b", at=3)
    lab.put(S("w", "", 1, 200, "workflow"), *boss, *step, S("o", "w", 40, 41, "handoff", HANDOFF), *helper)

    assert delegations(lab)[1:] == [("boss", 1, "nesting", False), ("helper", None, "handoff", True)]


def test_a_handoff_may_come_as_long_as_a_run_is_open(lab: Lab) -> None:
    boss, helper = agent("b", at=1, to=50, agent="boss"), agent("h", at=60, to=90, agent="helper")
    lab.put(boss, chat("m", "b", at=2), helper, chat("k", "h", at=61), record=RunRecord("r", "r"))

    assert delegations(lab) == [("boss", None, None, True), ("helper", None, None, True)]


def test_what_was_not_received_may_be_an_agent_of_which_the_agents_below_it_are_steps(lab: Lab) -> None:
    helper, boss = agent("h", "g", at=10, to=20, agent="helper"), agent("b", "g", at=30, to=40, agent="boss")
    lab.put(helper, chat("m", "h", at=11), boss, chat("k", "b", at=31))

    assert delegations(lab) == [("helper", None, None, False), ("boss", None, None, False)]


PARENT = {"gen_ai.agent.parent": "boss"}
AT_WORK = [agent("b", agent="boss"), ASKS, DIG]


def test_an_agent_of_a_separate_trace_says_who_started_it(lab: Lab) -> None:
    """An asyncio task or a thread without the context: a link, or the name of an agent that was at work, says whose it is."""
    helper, later = agent("h", at=20, to=40, agent="helper"), agent("h", at=120, to=140, agent="helper")
    helpers = {
        "nothing": (helper, (None, None)),
        "link to a tool": (replace(helper, links=[(TRACE, "t")]), (1, "link")),
        "link to an agent": (replace(helper, links=[(TRACE, "b")]), (1, "link")),
        "link to no span": (replace(helper, links=[(THIRD, "b")]), (None, None)),
        "name": (replace(helper, attrs=helper.attrs | PARENT), (1, "link")),
        "name of none": (replace(helper, attrs=helper.attrs | {"gen_ai.agent.parent": "stranger"}), (None, None)),
        "link to a turn before": (replace(later, links=[(TRACE, "b")]), (None, "root")),
        "name of one before": (replace(later, attrs=later.attrs | PARENT), (None, "root")),
    }
    runs = {name: (one, chat("m2", "h", at=one.at + 1)) for name, (one, _) in helpers.items()}
    lab.put_each({name: (*AT_WORK, *(replace(span, trace=OTHER) for span in spans)) for name, spans in runs.items()})

    assert {name: delegations(lab, name)[1][:3] for name in helpers} == {
        name: ("helper", *said) for name, (_, said) in helpers.items()
    }


def test_of_two_agents_at_work_with_the_name_that_started_it_none_is_known(lab: Lab) -> None:
    both = [agent("b", agent="boss"), replace(agent("c", at=1, agent="boss"), trace=THIRD)]
    lab.put(*both, tool("t", "b", at=5), replace(agent("h", at=20, to=40, agent="helper", **PARENT), trace=OTHER))

    assert delegations(lab)[2] == ("helper", None, "link", True)
    assert lab.rows("SELECT reason FROM doubts WHERE relation = 'agents'") == [("called-by-unknown",)]

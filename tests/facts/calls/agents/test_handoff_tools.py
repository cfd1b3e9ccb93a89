"""Tools by which a model hands over: a delegation and no tool call. An agent that is used as a tool is both."""

from __future__ import annotations

from typing import Any

import pytest
from building import Lab, S, agent, asks, chat, tool
from instrumented import ACTIVATIONS, TOOLS


def flow(*parts: S) -> tuple[S, ...]:
    """A workflow around the spans."""
    return (S("w", at=0, to=200, name="workflow"), *parts)


def handing(name: str, arguments: str = "{}", **attrs: Any) -> list[S]:
    """An agent that asks for a tool, which is executed."""
    asked = {"gen_ai.output.messages": asks(("call_t", name, {})), "gen_ai.response.finish_reasons": ["tool_calls"]}
    call = tool("t", "a", at=8, tool=name, **{"gen_ai.tool.call.arguments": arguments}, **attrs)
    return [agent("a", "w", to=20, agent="triage"), chat("m", "a", at=1, **asked), call]


def test_the_agent_that_a_tool_names_works_next(lab: Lab) -> None:
    tools = [
        ("transfer_to_billing", "{}", "billing"),
        ("transfer_to_billing", "{}", "Billing Agent"),
        ("transfer_to_billing_agent", "{}", "billing"),
        ("Handoff-transfer_to_BillingAgent", "{}", "BillingAgent"),
        ("transferToBilling", "{}", "billing"),
        ("handoff_to_agent", '{"agent_name": "billing", "message": "please"}', "billing"),
        ("transfer_to_agent", '{"agent_name": "billing"}', "billing"),
        ("handoff", '{"to_agent": "billing", "reason": "money"}', "billing"),
        ("delegate_to_billing", "{}", "billing"),
        ("transfer_back_to_billing", "{}", "billing"),
    ]
    runs = {
        f"{name} {target}": (*handing(name, said), agent("b", "w", at=30, to=60, agent=target))
        for name, said, target in tools
    }
    lab.put_each({run: flow(*spans, chat("n", "b", at=31)) for run, spans in runs.items()})

    for name, _, target in tools:
        run = f"{name} {target}"
        assert lab.rows(ACTIVATIONS, run) == [("triage", None, "root"), (target, 1, "handoff")], run
        assert lab.rows(TOOLS, run) == [], run
        assert lab.totals("tool_calls", "errors", run=run) == (0, 0), run
        assert lab.rows("SELECT counted_as, counted_by FROM spans WHERE kind = 'tool'", run) == [
            ("none", "handoff-tool")
        ], run


def test_an_agent_that_outlasts_the_tool_is_not_used_by_it(lab: Lab) -> None:
    """JavaScript rounds starts down: the agent seems to begin before the tool had ended."""
    lab.put(
        *flow(*handing("transfer_to_billing"), agent("b", "w", at=8, to=60, agent="billing"), chat("n", "b", at=31))
    )

    assert lab.rows(ACTIVATIONS) == [("triage", None, "root"), ("billing", 1, "handoff")]
    assert lab.rows(TOOLS) == []


def test_agents_that_hand_over_to_each_other(lab: Lab) -> None:
    """Each of a swarm's agents has a tool for each other one."""
    back = tool("u", "b", at=38, tool="transfer_to_triage")
    lab.put(*flow(*handing("transfer_to_billing"), agent("b", "w", at=30, to=50, agent="billing"), chat("n", "b", at=31), back,
                  agent("c", "w", at=60, to=90, agent="triage"), chat("o", "c", at=61)))  # fmt: skip

    assert lab.rows(ACTIVATIONS) == [("triage", None, "root"), ("billing", 1, "handoff"), ("triage", 2, "handoff")]
    assert lab.totals("tool_calls") == (0,)


def test_two_at_once(lab: Lab) -> None:
    """Both were asked for by one answer."""
    other = tool("u", "a", at=9, tool="transfer_to_refunds")
    lab.put(*flow(*handing("transfer_to_billing"), other, agent("b", "w", at=30, to=50, agent="billing"), chat("n", "b", at=31),
                  agent("c", "w", at=32, to=60, agent="refunds"), chat("o", "c", at=33)))  # fmt: skip

    assert lab.rows(ACTIVATIONS) == [("triage", None, "root"), ("billing", 1, "handoff"), ("refunds", 1, "handoff")]
    assert lab.totals("tool_calls") == (0,)


def test_two_instrumentations_tell_of_one_handoff(lab: Lab) -> None:
    again = tool("u", "t", at=8, tool="transfer_to_billing", **{"gen_ai.tool.call.id": "call_t"})
    again.scope = "other"
    lab.put(
        *flow(
            *handing("transfer_to_billing"),
            again,
            agent("b", "w", at=30, to=60, agent="billing"),
            chat("n", "b", at=31),
        )
    )

    assert lab.rows(ACTIVATIONS) == [("triage", None, "root"), ("billing", 1, "handoff")]
    assert lab.totals("tool_calls") == (0,)


@pytest.mark.parametrize(
    "then",
    [
        [],
        [agent("b", "w", at=30, to=60, agent="refunds"), chat("n", "b", at=31)],
        [chat("o", "a", at=12), agent("b", "w", at=30, to=60, agent="billing"), chat("n", "b", at=31)],
    ],
    ids=["no agent", "another agent", "its caller asked again before"],
)
def test_a_tool_after_which_another_works_is_a_tool(lab: Lab, then: list[S]) -> None:
    """A bank has tools of such names, too."""
    lab.put(*flow(*handing("transfer_to_billing"), *then))

    assert [(name, outcome) for name, _, outcome in lab.rows(TOOLS)] == [("transfer_to_billing", "ok")]


def test_one_that_failed_handed_nothing_over(lab: Lab) -> None:
    lab.put(
        *flow(*handing("transfer_to_billing", **{"error.type": "E"}), agent("b", "w", at=30, to=60, agent="billing"))
    )

    assert [(name, outcome) for name, _, outcome in lab.rows(TOOLS)] == [("transfer_to_billing", "error")]


@pytest.mark.parametrize(("target", "certain"), [("billing", False), ("sales", True)])
def test_one_whose_name_only_its_request_tells_may_hand_over(lab: Lab, target: str, certain: bool) -> None:
    """Its span has no more than the id of the call."""
    call = S("t", "a", 8, 9, "ToolCall", {"span.kind": "TOOL", "tool.call_id": "call_t"}, scope="own")
    spans = *handing("transfer_to_billing")[:2], call
    lab.put(*flow(*spans, agent("b", "w", at=30, to=60, agent=target), chat("n", "b", at=31)))

    assert lab.rows("SELECT name, certain FROM tool_calls") == [("transfer_to_billing", certain)]


@pytest.mark.parametrize(("name", "certain"), [("transfer_to_billing.call", False), ("get_weather.call", True)])
def test_one_that_hands_over_by_its_spans_name_may_where_no_agent_is_recorded(
    lab: Lab, name: str, certain: bool
) -> None:
    lab.put(chat("m", at=1), S("t", "", 8, 9, name, {"span.kind": "TOOL"}, scope="own"))

    assert lab.rows("SELECT certain FROM tool_calls") == [(certain,)]


@pytest.mark.parametrize("parent", ["t", "w"], ids=["inside of the tool", "in its time"])
def test_an_agent_that_works_while_the_tool_runs_is_used_as_one(lab: Lab, parent: str) -> None:
    """The next one of that name is at work for the next call."""
    first, second = handing("delegate_to_billing")[2], tool("u", "a", at=50, tool="delegate_to_billing")
    first.to, second.to = 40, 80
    lab.put(*flow(agent("a", "w", to=100, agent="triage"), chat("m", "a", at=1), first, agent("b", parent, at=10, to=30, agent="billing"),
                  chat("n", "b", at=11), second, agent("c", parent.replace("t", "u"), at=52, to=70, agent="billing"),
                  chat("o", "c", at=53)))  # fmt: skip

    assert [(name, outcome) for name, _, outcome in lab.rows(TOOLS)] == [("delegate_to_billing", "ok")] * 2

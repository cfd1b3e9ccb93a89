"""What an instrumentation that no recording verified leaves open of tools, since others are known to record them so."""

from __future__ import annotations

import json

import pytest
from building import Lab, S, agent, asks, chat, says, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}
OUTPUT = "gen_ai.output.messages"


def never(lab: Lab, name: str) -> str:
    """Return the verdict on whether a tool was never called."""
    lab.facts.ensure(["r"])
    asked = [parse_assertion({"type": "tool_not_invoked", "tool": name})]
    return evaluate(lab.store, asked, ["r"], DIALECTS)[0].verdicts[0].status.value


def test_agents_alone_show_no_absence_of_tools(lab: Lab) -> None:
    """CrewAI's instrumentation wrote agents, and none of what they did."""
    lab.put(agent("a"), agent("b", "a", at=1))

    assert never(lab, "rm") == "inconclusive"


@pytest.mark.parametrize(
    "others",
    [
        (),
        (agent("b", "a", at=1), tool("t", "b", at=1)),
        (agent("b", "a", at=1), chat("m", "b", **{OUTPUT: says("Hi.")})),
    ],
)
def test_one_agent_or_agents_at_work_do(lab: Lab, others: tuple[S, ...]) -> None:
    """A program that writes agents and tools itself may have called no tool."""
    lab.put(agent("a"), *others)

    assert never(lab, "rm") == "pass"


@pytest.mark.parametrize("name", ["DynamicStructuredTool", "search.__call__", "Delegate work to coworker"])
def test_a_class_a_method_or_words_are_no_name(lab: Lab, name: str) -> None:
    lab.put(agent("a"), tool("t", "a", at=1, tool=name))

    assert lab.rows("SELECT name FROM tool_calls") == [(None,)]
    assert never(lab, "rm") == "inconclusive"


def test_a_name_by_which_a_model_called_it_is_one(lab: Lab) -> None:
    asked = chat("m", "a", **{OUTPUT: asks(("c", "WeatherTool", {}))})
    lab.put(agent("a"), asked, tool("t", "a", at=6, tool="WeatherTool", **{"gen_ai.tool.call.id": "c"}))

    assert lab.rows("SELECT name FROM tool_calls") == [("WeatherTool",)]
    assert never(lab, "rm") == "pass"


@pytest.mark.parametrize(("at", "verdict"), [(8, "inconclusive"), (1, "pass")])
def test_an_agent_that_works_after_a_request_may_be_the_tool(lab: Lab, at: int, verdict: str) -> None:
    """Smolagents' instrumentation does not list the agents that a model is offered as tools."""
    offered = json.dumps([{"type": "function", "name": "search"}])
    asked = chat("m", "a", at=2, **{OUTPUT: asks(("c", "researcher", {})), "gen_ai.tool.definitions": offered})
    lab.put(agent("a"), asked, agent("b", "a", at=at, to=at + 2, agent="researcher"))

    assert never(lab, "researcher") == verdict


def test_an_agent_inside_of_another_may_be_a_tool_of_its_name(lab: Lab) -> None:
    kind = "span.type"
    outer, inner = S("a", "", 0, 90, "boss", {kind: "agent"}), S("b", "a", 5, 50, "helper", {kind: "agent"})
    lab.put(outer, inner, S("t", "b", 6, 9, "search", {kind: "tool"}))

    assert (never(lab, "helper"), never(lab, "rm")) == ("inconclusive", "pass")


def test_requests_that_were_sent_again_are_failed_attempts(lab: Lab) -> None:
    """A resend count is HTTP's semantic convention, whichever span carries it."""
    lab.put(chat("m", **{"http.request.resend_count": 2, OUTPUT: says("Hi.")}))

    assert lab.totals("failed_llm_attempts") == (2,)


def test_an_interrupted_answer_may_be_none(lab: Lab) -> None:
    """The program may have shown what came of it."""
    unused = dict.fromkeys(("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"))
    lab.put(chat("m", **unused, **{"gen_ai.response.finish_reasons": ["interrupted"], OUTPUT: says("I will I")}))

    assert lab.rows("SELECT outcome FROM llm_calls") == [(None,)]


def test_tools_inside_of_tools_may_be_another_agents(lab: Lab) -> None:
    """Haystack's and CrewAI's instrumentations write no span of an agent that is a tool."""
    lab.put(agent("a"), tool("t", "a", at=1, to=9, tool="ask"), tool("u", "t", at=2, to=5, tool="search"))

    assert lab.rows("SELECT relation FROM gaps WHERE reason = 'agent-among-steps'") == [("agents",)]

"""Which execution carried out which request of a model (spec: span-model.md §4)."""

from __future__ import annotations

import json

import pytest
from building import Lab, S, agent, asks, chat, says, tool
from instrumented import TOOLS


def test_an_id_of_two_parts_is_also_its_first_part(lab: Lab) -> None:
    """OpenAI's Responses API has two ids for a call; some instrumentations write both, others the first.

    The other call, of the same tool, ran first: order alone would swap the arguments.
    """
    second = "c2|fc_2", "search", {"q": 2}
    ids = [(requested, executed) for requested in ("c1|fc_1", "c1|fc_1|x", "c1") for executed in ("c1|fc_1", "c1")]
    runs = {
        f"{requested} {executed}": (
            agent("a"),
            chat("m", "a", at=1, **{"gen_ai.output.messages": asks((requested, "search", {"q": 1}), second)}),
            tool("t2", "a", at=10, tool="search", **{"gen_ai.tool.call.id": "c2"}),
            tool("t1", "a", at=20, tool="search", **{"gen_ai.tool.call.id": executed}),
        )
        for requested, executed in ids
    }  # fmt: skip
    lab.put_each(runs)

    for run in runs:
        assert lab.rows(TOOLS, run) == [("search", '{"q":2}', "ok"), ("search", '{"q":1}', "ok")], run


def test_an_id_that_a_model_uses_again_does_not_join_two_tools(lab: Lab) -> None:
    """`get_weather` was run without the id of its request, `search` twice under that id: each request has its execution."""
    searches = [("call_0", "search", {"q": "a"}), ("call_0", "search", {"q": "b"})]
    lab.put(
        agent("a"),
        chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("call_0", "get_weather", {}))}),
        tool("t", "a", at=10, **{"gen_ai.tool.call.id": None}),
        chat("n", "a", at=20, **{"gen_ai.output.messages": asks(*searches)}),
        tool("u", "a", at=30, tool="search", **{"gen_ai.tool.call.id": "call_0"}),
        tool("v", "a", at=40, tool="search", **{"gen_ai.tool.call.id": "call_0"}),
        chat("o", "a", at=50, **{"gen_ai.output.messages": says("Done.")}),
    )

    assert lab.rows("SELECT name FROM tool_calls ORDER BY call_no") == [("get_weather",), ("search",), ("search",)]


def test_an_id_that_is_used_again_gives_no_execution_to_a_tool_that_was_not_offered(lab: Lab) -> None:
    """Of three requests under one id the second is of no offered tool, and the third, whose span came late, has no id of its own."""
    offered = {"gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "get_weather"}])}

    def asked(id: str, at: int, *calls: tuple[str | None, str, dict[str, int]]) -> S:
        return chat(id, "a", at=at, **offered, **{"gen_ai.output.messages": asks(*calls)})

    lab.put(
        agent("a"),
        asked("m", 1, ("call_0", "get_weather", {"n": 1})),
        tool("t", "a", at=10, **{"gen_ai.tool.call.id": "call_0"}),
        asked("n", 20, ("call_0", "functions.get_weather", {"n": 2})),
        asked("o", 30, (None, "get_weather", {"n": 3})),
        tool("u", "a", at=40, **{"gen_ai.tool.call.id": "call_0"}),
        chat("p", "a", at=50, **offered, **{"gen_ai.output.messages": says("Done.")}),
    )

    assert [row[:2] for row in lab.rows(TOOLS)] == [("get_weather", '{"n":1}'), ("get_weather", '{"n":3}')]


def test_a_tool_of_another_name_was_not_given_what_the_request_says(lab: Lab) -> None:
    """In opencode a call of an unknown tool becomes one of its tool `invalid`, whose arguments are the unknown tool and an error."""
    lab.put(
        agent("a"),
        chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "invalid", {"tool": "get_weather"}))}),
        tool("t", "a", at=20, tool="get_weather", **{"gen_ai.tool.call.id": "c1"}),
    )

    assert lab.rows(TOOLS) == [("get_weather", None, "ok")]


def test_which_tools_several_requests_of_one_id_were_of_is_unknown_where_their_span_names_another(lab: Lab) -> None:
    """The AI SDK keeps calls by their ids: it writes the last one's name for all, and one span is left of three calls."""
    alike = ("call_0", "add_numbers", {"a": 1})
    lab.put(
        agent("a"),
        chat("m", "a", at=1, **{"gen_ai.output.messages": asks(alike, alike, alike)}),
        tool("t", "a", at=20, tool="get_weather", **{"gen_ai.tool.call.id": "call_0"}),
        chat("n", "a", at=50, **{"gen_ai.output.messages": says("Done.")}),
    )

    calls = "SELECT span_id IS NOT NULL, name, outcome FROM tool_calls ORDER BY call_no"
    assert sorted(lab.rows(calls), key=str) == [*3 * [(False, None, None)], (True, "get_weather", None)]


def test_which_of_two_requests_an_execution_carried_out_is_not_guessed(lab: Lab) -> None:
    """One answer asks for a tool twice, and one execution, which says its name alone, is all that follows."""
    first, second = ("c1", "search", {"q": 1}), ("c2", "search", {"q": 2})
    lab.put(
        agent("a"),
        chat("m", "a", at=1, **{"gen_ai.output.messages": asks(first, second)}),
        tool("t", "a", at=20, tool="search", **{"gen_ai.tool.call.id": None}),
    )  # fmt: skip

    executed = "SELECT arguments, call_id FROM tool_calls WHERE outcome = 'ok'"
    assert lab.rows(executed) == [(None, None)]


@pytest.mark.parametrize(
    ("second_at", "second_failed", "known"), [(20, True, False), (21, True, True), (20, False, True)]
)
def test_which_of_two_executions_that_began_at_once_is_whose_is_not_guessed(
    lab: Lab, second_at: int, second_failed: bool, known: bool
) -> None:
    """They name their tool alone, and one of them failed: which arguments it had is unknown."""
    unnamed = {"gen_ai.tool.call.id": None}
    second = tool("t2", "a", at=second_at, tool="search", **unnamed)
    second.error = "no such note" if second_failed else None
    lab.put(
        agent("a"),
        chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "search", {"q": 1}), ("c2", "search", {"q": 2}))}),
        tool("t1", "a", at=20, tool="search", **unnamed),
        second,
    )  # fmt: skip

    arguments = [text for (text,) in lab.rows("SELECT arguments FROM tool_calls ORDER BY arguments")]
    assert arguments == (['{"q":1}', '{"q":2}'] if known else [None, None])


def test_an_execution_that_names_its_tool_alone_is_of_what_its_agent_requested_last(lab: Lab) -> None:
    """What the agent requested before, and nothing executed, was answered otherwise when it asked its model again."""
    unnamed = {"gen_ai.tool.call.id": None}
    lab.put(
        agent("a"),
        chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "search", {"q": 1}))}),
        chat("n", "a", at=10, **{"gen_ai.output.messages": asks(("c2", "search", {"q": 2}), ("c3", "search", {"q": 3}))}),
        tool("t2", "a", at=20, tool="search", **unnamed),
        tool("t3", "a", at=30, tool="search", **unnamed),
    )  # fmt: skip

    rows = [row for row in lab.rows(TOOLS) if row[-1] == "ok"]
    assert rows == [("search", '{"q":2}', "ok"), ("search", '{"q":3}', "ok")]


def test_the_same_request_of_two_agents_is_of_the_agent_that_executed_it(lab: Lab) -> None:
    """The first of them failed before its tool ran: what runs later in another agent is not its request."""
    same, unnamed = ("search", {"q": 1}), {"gen_ai.tool.call.id": None, "gen_ai.tool.call.arguments": '{"q": 1}'}
    lab.put(
        agent("top", to=100),
        agent("a", "top", at=1, to=5, agent="first"),
        chat("m", "a", at=2, **{"gen_ai.output.messages": asks(("c1", *same))}),
        agent("b", "top", at=6, to=30, agent="second"),
        chat("n", "b", at=7, **{"gen_ai.output.messages": asks(("c2", *same))}),
        tool("t1", "b", at=20, tool="search", **unnamed),
        chat("o", "top", at=40, **{"gen_ai.output.messages": asks(("c3", *same))}),
        tool("t2", "top", at=50, tool="search", **unnamed),
    )  # fmt: skip

    calls = lab.rows("SELECT span_id, call_id, outcome FROM tool_calls WHERE run_id = :run ORDER BY call_no")
    assert [(call_id, outcome) for _, call_id, outcome in calls] == [("c1", None), ("c2", "ok"), ("c3", "ok")]


@pytest.mark.parametrize(("other", "calls"), [("transfer_to_billing", []), ("transfer_to_savings", [None])])
def test_of_several_handoffs_in_one_answer_the_others_are_no_tool_calls_either(
    lab: Lab, other: str, calls: list[None]
) -> None:
    """OpenAI's Agents SDK carries out the first and answers the others with a note. A tool that names no agent of the run is one."""
    answered = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c2", "result": "Done."}]}]
    lab.put(
        agent("w", to=100),
        agent("a", "w", at=1, to=10, agent="triage"),
        chat("m", "a", at=2, **{"gen_ai.output.messages": asks(("c1", "transfer_to_billing", {}), ("c2", other, {}))}),
        agent("b", "w", at=20, to=50, agent="billing"),
        chat("n", "b", at=21, **{"gen_ai.input.messages": json.dumps(answered)}),
    )  # fmt: skip

    assert [(name, outcome) for name, _, outcome in lab.rows(TOOLS)] == [(other, outcome) for outcome in calls]

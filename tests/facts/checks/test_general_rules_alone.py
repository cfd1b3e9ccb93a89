"""What is doubted of spans that no recording verified: their instrumentation may copy, wrap, repeat and hide."""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, chat, says, tool

OWN = {"span.kind": "tool", "tool.name": "search"}


def own(id: str, parent: str, at: int, **attrs: Any) -> S:
    """A tool's span in the words of a program."""
    return S(id, parent, at, at + 2, "search", OWN | attrs)


def models(lab: Lab) -> list[Any]:
    return [model for (model,) in lab.rows("SELECT response_model FROM llm_calls ORDER BY call_no")]


def named(id: str, at: int, response: str, request: str = "gpt-4o") -> S:
    return chat(id, "a", at=at, **{"gen_ai.request.model": request, "gen_ai.response.model": response})


def test_an_answering_model_under_the_requested_name_may_be_a_copy(lab: Lab) -> None:
    lab.put(agent("a"), named("m", 1, "gpt-4o"))

    assert models(lab) == [None]
    assert lab.rows("SELECT reason FROM doubts WHERE column_name = 'response_model'") == [("model-as-requested",)]


@pytest.mark.parametrize("name", ["gpt-4o-2024-08-06", "claude-sonnet-4-5-20250929"])
def test_a_dated_name_is_that_of_one_version(lab: Lab, name: str) -> None:
    lab.put(agent("a"), named("m", 1, name, request=name))

    assert models(lab) == [name]


def test_a_scope_that_writes_another_name_copies_none(lab: Lab) -> None:
    lab.put(agent("a"), named("m", 1, "gpt-4o"), named("n", 20, "gpt-4o-2024-08-06"))

    assert models(lab) == ["gpt-4o", "gpt-4o-2024-08-06"]


@pytest.mark.parametrize("parent", ["m", "a"], ids=["below it", "next to it"])
def test_a_tool_in_the_time_of_a_model_span_may_be_in_a_loop_of_requests(lab: Lab, parent: str) -> None:
    around = chat("m", "a", at=1)
    around.to = 90
    lab.put(agent("a"), around, tool("t", parent, at=20))

    assert lab.rows("SELECT reason FROM gaps WHERE relation = 'llm_calls' AND reason LIKE 'tools%'")
    assert lab.rows("SELECT input_tokens FROM llm_calls") == [(None,)]


@pytest.mark.parametrize(
    "ends",
    [{"gen_ai.response.finish_reasons": ["tool_calls"]}, {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "get_weather", "arguments": {}}]}])}],
    ids=["by its finish reason", "by its answer"],
)  # fmt: skip
def test_a_model_span_that_asked_for_tools_is_one_request(lab: Lab, ends: dict[str, Any]) -> None:
    around = chat("m", "a", at=1, **ends)
    around.to = 90
    lab.put(agent("a"), around, tool("t", "m", at=20))

    assert lab.rows("SELECT reason FROM gaps WHERE relation = 'llm_calls' AND reason LIKE 'tools%'") == []


WRAPPED: dict[str, dict[str, Any]] = {
    "as text": {"input_str": "{'city': 'Paris'}", "tags": []},
    "with options": {"input": {"city": "Paris"}, "options": None},
    "a schema": {"city": {"type": "string"}},
}


@pytest.mark.parametrize("arguments", WRAPPED.values(), ids=WRAPPED)
def test_arguments_inside_of_others_are_unknown(lab: Lab, arguments: dict[str, Any]) -> None:
    lab.put(agent("a"), own("t", "a", 1, **{"tool.arguments": json.dumps(arguments)}))

    assert lab.rows("SELECT arguments FROM tool_calls") == [(None,)]
    assert lab.rows("SELECT reason FROM doubts WHERE column_name = 'arguments'") == [("wrapped-arguments",)]


@pytest.mark.parametrize("arguments", ['{"filter":{"city":"Paris"}}', '{"shape":{"type":"circle"}}'])
def test_an_object_is_an_argument(lab: Lab, arguments: str) -> None:
    lab.put(agent("a"), own("t", "a", 1, **{"tool.arguments": arguments}))

    assert lab.rows("SELECT arguments FROM tool_calls") == [(arguments,)]


def test_the_conventions_attribute_holds_the_arguments_of_the_tool(lab: Lab) -> None:
    given = json.dumps(WRAPPED["with options"])
    lab.put(agent("a"), tool("t", "a", at=1, **{"gen_ai.tool.call.arguments": given}))

    assert lab.rows("SELECT arguments FROM tool_calls") == [(given,)]


def test_a_programs_own_tool_span_succeeded_where_its_result_says_so(lab: Lab) -> None:
    results = [
        ("21 degrees", "ok"),
        ('{"error": null, "rows": 3}', "ok"),
        ("0 errors", "ok"),
        ("Toolset error: ToolCallError: refund of A-1", None),
        ("refund of A-1 failed", None),
        ("permission denied", None),
        ("the command ended with exit code 3", None),
        (None, None),
    ]
    lab.put_each(
        {
            str(one): (agent("a"), own("t", "a", 1, **({} if one is None else {"tool.result": one})))
            for one, _ in results
        }
    )

    assert sorted(lab.rows("SELECT run_id, outcome FROM tool_calls"), key=str) == sorted(
        [(str(one), outcome) for one, outcome in results], key=str
    )


def test_silence_is_success_where_the_same_scope_marks_failures(lab: Lab) -> None:
    failing = own("t", "a", 1)
    failing.error = "no such order"
    lab.put(agent("a"), failing, own("u", "a", 10))

    assert lab.rows("SELECT outcome FROM tool_calls ORDER BY call_no") == [("error",), ("ok",)]


def test_silence_is_success_by_the_conventions(lab: Lab) -> None:
    lab.put(agent("a"), tool("t", "a", at=1))

    assert lab.rows("SELECT outcome FROM tool_calls") == [("ok",)]


def test_a_step_that_failed_inside_of_an_answered_call_may_be_an_attempt(lab: Lab) -> None:
    around, step = chat("m", "a", at=1), S("x", "m", 2, 3, "request_run", {})
    around.to, step.error = 50, "500"
    lab.put(agent("a"), around, step)

    assert lab.rows("SELECT certain FROM errors") == [(False,)]
    assert lab.totals("errors") == (None,)


@pytest.mark.parametrize("word", ["unknown", "None", "False", "undefined"])
def test_a_placeholder_is_no_name(lab: Lab, word: str) -> None:
    lab.put(agent("a", agent=word), tool("t", "a", at=1, tool=word))

    assert lab.rows("SELECT name FROM agents") == [(None,)]
    assert lab.rows("SELECT name FROM tool_calls") == [(None,)]


def test_calls_side_by_side_are_merged_in_a_span_that_is_no_tools(lab: Lab) -> None:
    lab.put(agent("a"), tool("t", "a", at=1), tool("u", "a", at=2, tool="(merged tools)"))

    assert lab.rows("SELECT name FROM tool_calls") == [("get_weather",)]


def test_a_note_of_usage_is_no_model_call(lab: Lab) -> None:
    note = {"gen_ai.response.model": "gpt-4o-2024-08-06", "gen_ai.usage.input_tokens": 10}
    lab.put(agent("a"), chat("m", "a", at=1), S("n", "a", 20, 21, "record_usage model_call", note))

    assert lab.totals("llm_calls") == (1,)


def test_an_agents_span_alone_shows_no_tools_in_a_programs_own_words(lab: Lab) -> None:
    lab.put(S("a", "", 0, 9, "support", {"span.kind": "agent", "agent.name": "support", "output": says("Done.")}))

    assert lab.totals("tool_calls") == (None,)

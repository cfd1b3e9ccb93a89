"""Google ADK with other settings than in the recordings: contents left out, and parts numbered where ids belong.

Ids and figures are made up.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, chat, says
from log_records import L, put_logs

pytestmark = pytest.mark.full


SCOPE = "gcp.vertex.agent"
ELIDED = json.dumps({"content": "<elided>", "index": 0, "finish_reason": "STOP"})
RESULTS = "SELECT arguments, result FROM tool_calls ORDER BY call_no"


def call(name: str, index: int, city: str) -> dict[str, Any]:
    return {"type": "tool_call", "id": f"{name}_{index}", "name": name, "arguments": {"city": city}}


def result(name: str, index: int, celsius: int) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": f"{name}_{index}", "response": {"celsius": celsius}}


def message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


LOOK = {"type": "text", "content": "Let me look."}
GO = message("user", {"type": "text", "content": "Go."})


def model(id: str, at: int, asked: list[dict[str, Any]], said: dict[str, Any]) -> S:
    return chat(id, "a", at=at, **{
        "gen_ai.operation.name": "generate_content", "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps([said]),
    })  # fmt: skip


def test_results_that_are_numbered_by_part_are_of_no_call(lab: Lab) -> None:
    """`get_weather_1` asks for Paris, behind a text; `get_weather_1` among the results is London's."""
    asks = message("assistant", LOOK, call("get_weather", 1, "Paris"), call("get_weather", 2, "London"))
    results = message("user", result("get_weather", 0, 21), result("get_weather", 1, 15))
    lab.put_sdk(
        agent("a"), model("m", 10, [GO], asks), model("n", 20, [GO, asks, results], json.loads(says("Done."))[0])
    )

    assert lab.rows(RESULTS) == [('{"city":"Paris"}', None), ('{"city":"London"}', None)]
    assert lab.totals("tool_calls") == (2,)


def test_a_number_that_is_used_again_is_the_newest_call(lab: Lab) -> None:
    """The first call's own result is numbered otherwise; that of a later turn which bears its number is not its own."""
    first = message("assistant", LOOK, call("get_weather", 1, "Paris"))
    results = message("user", result("get_weather", 0, 21))
    second = message("assistant", call("get_weather", 0, "Rome"), call("get_weather", 1, "London"))
    again = message("user", result("get_weather", 0, 25), result("get_weather", 1, 15))
    lab.put(
        agent("a"),
        model("m", 10, [GO], first),
        model("n", 20, [GO, first, results], second),
        model("o", 30, [GO, first, results, second, again], json.loads(says("Done."))[0]),
    )

    assert lab.rows(RESULTS) == [
        ('{"city":"Paris"}', '{"celsius":21}'),
        ('{"city":"Rome"}', '{"celsius":25}'),
        ('{"city":"London"}', '{"celsius":15}'),
    ]


def test_a_result_that_names_another_tool_is_none(lab: Lab) -> None:
    """One id, two names: the result is not of this call."""
    asked = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {}}
    other = {"type": "tool_call_response", "id": "c1", "name": "get_population", "response": "2 million"}
    lab.put(agent("a"), model("m", 10, [GO], message("assistant", asked)), model("n", 20, [message("user", other)], GO))

    assert lab.rows("SELECT name, result FROM tool_calls") == [("get_weather", None)]


@pytest.mark.parametrize(
    ("key", "response"),
    [
        ("gcp.vertex.agent.tool_response", '{"result": "<not specified>"}'),
        ("gcp.vertex.agent.tool_response", "<not specified>"),
        ("gen_ai.tool.call.result", '{"result": "<not specified>"}'),
    ],
)
def test_a_tool_that_returned_nothing_has_no_result(lab: Lab, key: str, response: str) -> None:
    attrs = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "approve", key: response}
    lab.put(S("t", "", 10, 20, "execute_tool approve", attrs, scope=SCOPE))

    assert lab.rows("SELECT name, result FROM tool_calls") == [("approve", None)]


def test_a_tool_that_the_agent_does_not_have_was_not_executed(lab: Lab) -> None:
    """An object of the abstract class answers for it; what fails in a tool that there is is its failure."""

    def executed(id: str, name: str, kind: str) -> S:
        attrs = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": kind}
        return S(id, "a", 10, 20, f"execute_tool {name}", attrs, scope=SCOPE, error="ValueError")

    lab.put(agent("a"), executed("t", "get_wether", "BaseTool"), executed("u", "get_weather", "FunctionTool"))

    assert lab.rows("SELECT name, outcome FROM tool_calls") == [("get_weather", "error")]
    assert lab.totals("tool_calls", "errors") == (1, 1)


def test_an_empty_object_is_a_result_where_contents_are_captured(lab: Lab) -> None:
    attrs = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "approve", "gen_ai.tool.call.result": "{}"}
    lab.put(S("t", "", 10, 20, "execute_tool approve", attrs, scope=SCOPE))

    assert lab.rows("SELECT result FROM tool_calls") == [("{}",)]


def test_what_was_left_out_is_no_answer(lab: Lab) -> None:
    """Without content capture the log events of version 1 say `<elided>`."""
    attrs = {"gen_ai.operation.name": "generate_content", "gen_ai.request.model": "gemini-2.5-flash"}
    lab.put(agent("a"), S("m", "a", 10, 20, "generate_content gemini-2.5-flash", attrs, scope=SCOPE))
    put_logs(lab, L("", 20, "m", scope=SCOPE, body=ELIDED, event_name="gen_ai.choice"))

    assert lab.rows("SELECT final_output FROM runs") == [(None,)]
    assert lab.rows("SELECT text FROM messages") == []

"""Spans that are called like a requested tool, and are read as nothing in particular: its executions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from building import Lab, S, agent, answered, asks, chat, says, tool

ASKED = chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "get_weather", {"city": "Paris"}))})
RAN = S("t", "a", 10, name="get_weather", scope="app")
CALLS = "SELECT name, arguments, outcome, source FROM tool_calls"


@pytest.mark.parametrize(
    "name", ["get_weather", "app.tools.get_weather", "Calling __main__.get_weather", "get_weather()"]
)
def test_a_traced_function_is_the_execution_of_the_request(lab: Lab, name: str) -> None:
    lab.put(agent("a"), ASKED, replace(RAN, name=name))

    assert lab.rows(CALLS) == [("get_weather", '{"city":"Paris"}', "ok", "span")]
    assert lab.totals("tool_calls") == (1,)


def test_one_that_failed_is_a_failed_call(lab: Lab) -> None:
    lab.put(agent("a"), ASKED, replace(RAN, error="no such city"))

    assert lab.rows(CALLS) == [("get_weather", '{"city":"Paris"}', "error", "span")]


def test_what_the_model_was_told_may_say_that_it_failed(lab: Lab) -> None:
    told = {"gen_ai.input.messages": answered("c1", "Error: no such city"), "gen_ai.output.messages": says("Sorry.")}
    lab.put(agent("a"), ASKED, RAN, chat("n", "a", at=20, **told))

    assert lab.rows(CALLS) == [("get_weather", '{"city":"Paris"}', None, "span")]


def test_functions_inside_of_the_call_are_none(lab: Lab) -> None:
    lab.put(agent("a"), ASKED, replace(RAN, to=15), S("u", "t", 11, name="get_weather", scope="app"))

    assert lab.totals("tool_calls") == (1,)


def test_others_are_no_executions(lab: Lab) -> None:
    runs = {
        "before it was asked for": (replace(RAN, at=0),),
        "called otherwise": (replace(RAN, name="check get_weather"),),
        "about it": (replace(RAN, name="policy.get_weather"),),
        "more than requests": (RAN, replace(RAN, id="u", at=20)),
        "of a client and a server": (RAN, replace(RAN, id="u", at=11, parent="", scope="server")),
        "of a tool with spans": (RAN, tool("v", "a", at=12)),
        "of a scope that writes tool spans": (RAN, replace(tool("v", "a", at=12, tool="get_time"), scope="app")),
    }
    lab.put_each({run: (agent("a"), ASKED, *others) for run, others in runs.items()})

    for run, others in runs.items():
        assert lab.rows("SELECT name FROM spans WHERE kind = 'tool' AND name LIKE '%get_weather'", run) == [
            (one.name,) for one in others if one.name == "execute_tool get_weather"
        ], run

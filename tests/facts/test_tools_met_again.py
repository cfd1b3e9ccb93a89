"""One tool call that several spans tell of, and spans that say less than others do: named, not named, in a trace of its own."""

from __future__ import annotations

import pytest
from building import Lab, S, agent, asks, chat, says, tool

CALLS = "SELECT name, outcome FROM tool_calls ORDER BY call_no"


def request(id: str, parent: str, at: int, **attrs: object) -> S:
    """What a client of MCP writes of its request to the server."""
    return S(id, parent, at, at + 1, "client.send_request", {"mcp.method.name": "tools/call", **attrs})


class TestSpansWithoutATool:
    """A tool span with neither name nor id says only that a tool ran there."""

    def test_inside_of_a_tool_call_it_is_a_layer(self, lab: Lab) -> None:
        """Also below a layer that has a name."""
        lab.put(agent("a"), tool("t", "a"), tool("u", "t", **{"gen_ai.tool.call.id": None}), request("n", "u", 1))

        assert lab.rows(CALLS) == [("get_weather", "ok")]
        assert lab.totals("tool_calls", "errors") == (1, 0)

    def test_layer_by_layer_they_are_one(self, lab: Lab) -> None:
        lab.put(agent("a"), tool("t", "a"), request("n", "t", 1), request("o", "n", 1))

        assert lab.totals("tool_calls") == (1,)

    def test_side_by_side_they_may_be_calls_that_the_tool_made(self, lab: Lab) -> None:
        """A program that calls other tools, or one request that was repeated."""
        lab.put(agent("a"), tool("t", "a"), request("n", "t", 0), request("o", "t", 1))

        assert lab.totals("tool_calls") == (None,)

    def test_beside_tool_calls_it_is_a_call(self, lab: Lab) -> None:
        lab.put(agent("a"), tool("t", "a"), request("n", "a", 10))

        assert lab.rows(CALLS) == [("get_weather", "ok"), (None, "ok")]

    def test_of_an_agent_in_a_tool_it_is_that_agents(self, lab: Lab) -> None:
        lab.put(agent("a"), tool("t", "a", at=1), agent("b", "t", at=1, to=3, agent="b"), request("n", "b", 2))

        assert lab.totals("tool_calls") == (2,)


def test_a_request_to_a_server_is_the_call_of_the_tool_behind_the_servers_prefix(lab: Lab) -> None:
    """Whatever its span is called: the attributes say that it is one."""
    lab.put(
        agent("a"), tool("t", "a", tool="weather_get_weather"), request("n", "t", 1, **{"mcp.tool.name": "get_weather"})
    )

    assert lab.rows(CALLS) == [("weather_get_weather", "ok")]


def test_a_model_call_that_failed_is_one_although_only_its_request_is_recorded(lab: Lab) -> None:
    """Its messages hold the result of the tool that ran before."""
    sent = says("hi")
    failed = S(
        "m", "", 10, 11, "openai.chat", {"gen_ai.request.model": "gpt-4o", "gen_ai.input.messages": sent}, error="400"
    )
    lab.put(agent("a"), chat("c", "a", **{"gen_ai.output.messages": asks(("c1", "get_weather", {}))}), failed)

    assert lab.rows("SELECT outcome FROM llm_calls ORDER BY call_no") == [("ok",), ("error",)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("us.anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3-5-sonnet-20240620"),
        ("azure/gpt-4o", "gpt-4o-2024-08-06"),
        ("openrouter/openai/gpt-4o", "openai/gpt-4o"),
    ],
)
def test_two_spellings_of_a_model_are_one(lab: Lab, one: str, other: str) -> None:
    """Two instrumentations side by side, the one behind a router that puts the provider before the name."""
    for id, scope, model in (("m", "router", one), ("n", "sdk", other)):
        span = chat(
            id,
            "a",
            at=1,
            **{
                "gen_ai.request.model": model,
                "gen_ai.response.model": None,
                "gen_ai.output.messages": says("21 degrees"),
            },
        )
        span.scope = scope
        lab.put(span)
    lab.put(agent("a"))

    assert lab.totals("llm_calls", "input_tokens") == (1, 100)

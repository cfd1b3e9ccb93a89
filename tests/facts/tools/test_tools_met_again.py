"""One tool call that several spans record, and spans that say less than others do: named, not named, in a separate trace."""

from __future__ import annotations

import json

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

    def test_next_to_tool_calls_it_is_a_call(self, lab: Lab) -> None:
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


class TestAnswersInTheFormOfATool:
    """A model "calls" a tool that stands for the form of its answer, and nothing executes it."""

    def forced(self, tool_choice: object) -> S:
        """A model call, alone, whose request says what must be called."""
        attrs = {
            "openinference.span.kind": "LLM",
            "llm.model_name": "gpt-4o",
            "llm.invocation_parameters": json.dumps({"model": "gpt-4o", "tool_choice": tool_choice}),
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "Weather",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"city": "Paris"}',
        }
        return S("m", "", 1, 2, "ChatCompletion", attrs, scope="openinference.instrumentation.openai")

    @pytest.mark.parametrize(
        "choice", [{"type": "function", "function": {"name": "Weather"}}, {"type": "tool", "name": "Weather"}]
    )
    def test_who_makes_a_model_call_a_tool_gets_an_answer(self, lab: Lab, choice: object) -> None:
        lab.put(self.forced(choice))

        assert lab.reasons() == []
        assert lab.rows("SELECT tool_calls_low, tool_calls_high FROM run_totals") == [(0, 1)]

    @pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "other"}}])
    def test_else_what_came_of_the_call_was_not_received(self, lab: Lab, choice: object) -> None:
        lab.put(self.forced(choice))

        assert lab.reasons() == ["unanswered_tool_call"]

    @pytest.mark.parametrize(
        ("before", "reasons"),
        [((chat("m", "p", at=1),), []), ((), ["unanswered_tool_call"])],
        ids=["the program around several calls ended", "a step may be a separate trace"],
    )
    def test_a_program_that_ended_lost_nothing(self, lab: Lab, before: tuple[S, ...], reasons: list[str]) -> None:
        asking = chat("n", "p", at=10, **{"gen_ai.output.messages": asks(("c1", "Weather", {"city": "Paris"}))})
        lab.put(S("p", "", 0, 50, "main"), *before, asking)

        assert lab.reasons() == reasons

"""What two instrumentations record of one run, where each of them misses a call that the other has."""

from __future__ import annotations

from dataclasses import replace

from building import Lab, S, agent, chat, tool


def test_agents_at_the_same_time_are_one_where_both_record_a_call_of_it(lab: Lab) -> None:
    """Agents have no arguments that could tell them apart: name and time decide."""
    lab.put(
        agent("a", to=50), chat("m", "a", at=1, **{"gen_ai.response.id": "r"}), chat("o", "a", at=10),
        *(
            replace(span, scope="sdk")
            for span in (agent("b", at=1, to=49), chat("n", "b", at=1, **{"gen_ai.response.id": "r"}), chat("p", "b", at=30))
        ),
    )  # fmt: skip

    assert lab.totals("agents", "llm_calls") == (1, 3)


def test_calls_of_one_tool_at_once_are_distinguished_by_their_arguments(lab: Lab) -> None:
    """The one instrumentation writes them in another order than the other."""

    def call(id: str, parent: str, at: int, city: str) -> S:
        return tool(id, parent, at=at, **{"gen_ai.tool.call.id": None, "gen_ai.tool.call.arguments": city})

    oslo, paris = '{"city": "Oslo"}', '{"city": "Paris"}'
    lab.put(
        agent("a", to=50), chat("m", "a", at=1, **{"gen_ai.response.id": "r"}),
        replace(call("t", "a", 10, oslo), error="it failed"), call("u", "a", 11, paris),
        *(
            replace(span, scope="sdk")
            for span in (
                agent("b", at=1, to=49), chat("n", "b", at=1, **{"gen_ai.response.id": "r"}), call("v", "b", 10, paris),
                call("w", "b", 11, oslo),
            )
        ),
    )  # fmt: skip

    assert lab.rows("SELECT arguments, outcome FROM tool_calls ORDER BY arguments") == [(oslo, "error"), (paris, "ok")]

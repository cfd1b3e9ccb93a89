"""Which execution carried out which request of a model (spec: span-model.md §4)."""

from __future__ import annotations

import pytest
from building import Lab, agent, asks, chat, tool
from instrumented import TOOLS


@pytest.mark.parametrize("requested", ["c1|fc_1", "c1|fc_1|x", "c1"])
@pytest.mark.parametrize("executed", ["c1|fc_1", "c1"])
def test_an_id_of_two_parts_is_also_its_first_part(lab: Lab, requested: str, executed: str) -> None:
    """OpenAI's Responses API has two ids for a call; some instrumentations write both, others the first.

    The other call, of the same tool, ran first: order alone would swap the arguments.
    """
    first, second = (requested, "search", {"q": 1}), ("c2|fc_2", "search", {"q": 2})
    lab.put(
        agent("a"),
        chat("m", "a", at=1, **{"gen_ai.output.messages": asks(first, second)}),
        tool("t2", "a", at=10, tool="search", **{"gen_ai.tool.call.id": "c2"}),
        tool("t1", "a", at=20, tool="search", **{"gen_ai.tool.call.id": executed}),
    )  # fmt: skip

    assert lab.rows(TOOLS) == [("search", '{"q":2}', "ok"), ("search", '{"q":1}', "ok")]


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

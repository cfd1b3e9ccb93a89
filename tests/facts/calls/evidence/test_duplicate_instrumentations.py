"""What two instrumentations record of one run, where each of them misses a call that the other has."""

from __future__ import annotations

from dataclasses import replace

from building import Lab, agent, chat


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

"""The order in which spans arrive, and the runs computed together, never change a fact."""

from __future__ import annotations

import random
from typing import Any

import pytest
from building import Lab, S, agent, asks, chat, tool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clawtrace.model.relations import RELATIONS

WORKLOAD = [
    agent("a"),
    chat("m1", "a", at=1, **{"gen_ai.output.messages": asks(("call_t1", "get_weather", {"city": "Paris"}))}),
    tool("t1", "a", at=8),
    agent("b", "t1", at=9, to=11, agent="researcher"),
    chat("m2", "b", at=9, **{"gen_ai.response.id": "x"}),
    chat("m3", "m2", at=9, **{"gen_ai.response.id": "x"}),
    tool("t2", "a", at=20, tool="pay"),
    S("lost", "nobody", 30, 31),
]


def everything(lab: Lab) -> dict[str, list[tuple[Any, ...]]]:
    lab.facts.ensure(["r"])
    names = [name for name in RELATIONS if name not in ("attributes", "commands")]
    return {name: sorted(lab.rows(f"SELECT * FROM {name}"), key=repr) for name in names}


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(1, len(WORKLOAD) - 1), max_size=3))
@pytest.mark.full
def test_order_batches_and_repeats_never_change_a_fact(seed: int, cuts: list[int]) -> None:
    """Any order of arrival, split into any requests, some delivered twice, gives the same facts."""
    straight = Lab().put(*WORKLOAD)
    shuffled = list(WORKLOAD)
    random.Random(seed).shuffle(shuffled)
    mixed = Lab()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(shuffled)], strict=True):
        mixed.put(*shuffled[start:end], *shuffled[: end // 2], arrival=seed % 7 + start)
        mixed.facts.ensure(["r"])

    assert everything(mixed) == everything(straight)


def test_runs_computed_together_or_alone_have_the_same_facts() -> None:
    together, alone = Lab(), Lab()
    for run in ("r1", "r", "r2"):
        together.put(*WORKLOAD, run=run)
    together.facts.ensure(["r1", "r", "r2"])
    alone.put(*WORKLOAD)
    pick = "SELECT * FROM {} WHERE run_id = :run"
    for name in ("spans", "llm_calls", "tool_calls", "agents", "messages", "errors", "run_totals", "run_tools", "runs"):
        one, other = (sorted(lab.rows(pick.format(name)), key=repr) for lab in (together, alone))
        assert one == other, name

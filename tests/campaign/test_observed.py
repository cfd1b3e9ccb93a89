"""What is proposed of a run that was seen holds of that run, and demands nothing that it did not show."""

from __future__ import annotations

import pytest

from clawtrace.assertions.registry import parse_assertion
from clawtrace.campaign.comparing.observed import observations


def proposed(*calls: tuple[str, int | None, int | None]):
    """Return the sequence that is proposed of tool calls, each a name, a start and an end."""
    found = [
        {"name": name, "start_ns": start, "end_ns": end, "outcome": "ok", "arguments": None}
        for name, start, end in calls
    ]
    nothing = dict.fromkeys(("delegations", "errors", "final_output", "llm_calls", "duration_ms"))
    totals = dict.fromkeys(("input_tokens", "output_tokens", "cost_usd"))
    observation, repeats = observations([nothing | {"tool_calls": found, "totals": totals}])
    assert repeats.fields == {"type": "no_loops", "max_repeats": 1}
    assert parse_assertion(observation.fields)
    return observation


def test_calls_one_after_the_other_are_in_order():
    """Each ended before the next began."""
    assert proposed(("a", 0, 1), ("b", 1, 2)).fields == {"type": "tool_sequence", "expected": ["a", "b"]}


@pytest.mark.parametrize("second", [(0, 9), (5, 12), (0, None)], ids=["the same time", "overlapping", "no end"])
def test_calls_side_by_side_demand_no_order(second):
    """The next run may start them the other way round."""
    observed = (
        proposed(("a", 0, 10), ("b", *second), ("c", 20, 21)) if second[1] else proposed(("a", 0, 10), ("b", 0, None))
    )
    expected = [{"any_order": ["a", "b"]}, "c"] if second[1] else [{"any_order": ["a", "b"]}]

    assert observed.fields == {"type": "tool_sequence", "steps": expected}
    assert "Concurrent calls may be in any order." in observed.why


def test_a_call_whose_start_is_unknown_is_in_no_order():
    """Nothing says that it came after the one before it."""
    assert proposed(("a", 0, 1), ("b", None, None)).fields["steps"] == [{"any_order": ["a", "b"]}]

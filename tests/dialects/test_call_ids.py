"""Ids of tool calls that contradict the message in which they stand join nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clawtrace.dialects.messages import parse_messages


def calls(*asked: tuple[str, str, str]) -> dict[str, Any]:
    """A message that asks for (call id, tool, city)."""
    parts = [{"type": "tool_call", "id": i, "name": name, "arguments": {"city": city}} for i, name, city in asked]
    return {"role": "assistant", "parts": parts}


def results(*ids: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "tool_call_response", "id": i, "response": i} for i in ids]}


def ids(*messages: dict[str, Any], direction: str = "input") -> list[str | None]:
    return [
        part.call_id for part in parse_messages("genai_parts", json.dumps(messages), direction) if part.type != "text"
    ]


PARIS, LONDON = ("get_weather_1", "get_weather", "Paris"), ("get_weather_2", "get_weather", "London")


def test_results_that_are_numbered_otherwise_than_the_calls_name_none() -> None:
    """Behind a text the calls are parts 1 and 2, their results parts 0 and 1: `get_weather_1` is Paris, then London."""
    assert ids(calls(PARIS, LONDON), results("get_weather_0", "get_weather_1")) == [None] * 4


def test_a_result_of_numbered_calls_that_is_missing_makes_the_others_doubtful() -> None:
    """Of two calls the one result is part 0, whichever it is of."""
    assert ids(calls(("w_0", "w", "Paris"), ("w_1", "w", "London")), results("w_0")) == [None] * 3


def test_two_calls_of_one_message_with_one_id_are_not_distinguished() -> None:
    assert ids(calls(("x", "w", "Paris"), ("x", "w", "London"), ("y", "w", "Oslo")), direction="output") == [
        None,
        None,
        "y",
    ]


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ((calls(PARIS, LONDON), results("get_weather_2", "get_weather_1")), 4),  # in another order
        ((calls(("call_a", "w", "Paris"), ("call_b", "w", "London")), results("call_b")), 3),  # one is still at work
        ((calls(("fc_1", "w", "Paris")), results("call_1")), 2),  # two ids of one call: of the item, and of the call
        ((results("call_1"),), 1),  # the calls were cut off
        ((calls(("call_a", "w", "Paris")), results("call_a"), calls(("call_b", "w", "Rome")), results("call_b")), 4),
        ((calls(("x", "w", "Paris"), ("x", "w", "Paris")), results("x")), 3),  # the same call twice
    ],
)
def test_ids_that_nothing_contradicts_are_kept(messages: tuple[dict[str, Any], ...], found: int) -> None:
    assert len([call_id for call_id in ids(*messages) if call_id is not None]) == found

"""Facts of spans and of log records, made comparable (`clawtrace.facts.logs.rows`)."""

from __future__ import annotations

from clawtrace.facts.logs.rows import comparable


def test_arguments_are_compared_without_regard_to_layout() -> None:
    one, other = '{"b": 1, "a": [1, 2]}', '{"a":[1,2],"b":1}'

    assert comparable("tool_arguments", one) == comparable("tool_arguments", other)
    assert comparable("tool_arguments", one) != comparable("tool_arguments", '{"a": [2, 1], "b": 1}')
    assert comparable("tool_name", one) != comparable("tool_name", other)


def test_what_is_no_json_is_compared_as_it_is() -> None:
    assert comparable("tool_arguments", "{cut off") == "{cut off"
    assert comparable("tool_arguments", "[" * 100_000) == "[" * 100_000
    assert comparable("tool_arguments", None) is None

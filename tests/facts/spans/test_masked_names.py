"""Names and contents that a Collector hashed or masked on their way: unknown, and never other names (spec: dialects.md, N)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from building import Lab, S, agent, answered, asks, chat, tool

HASH = "0d" * 32
"""What the attributes processor's action `hash` leaves of a value."""


@pytest.mark.parametrize("name", ["****_all", "****"])
def test_a_tool_without_its_name(lab: Lab, name: str) -> None:
    """The message that asked for it and the span's own name were masked, too: it may be any tool."""
    lab.put(
        agent("a"),
        chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("call_t", name, {}))}),
        replace(tool("t", "a", at=8, tool=name), name="op"),
        chat("n", "a", at=12, **{"gen_ai.input.messages": answered("call_t", "done")}),
    )

    assert lab.rows("SELECT name FROM tool_calls") == [(None,)]


def test_a_hashed_name_is_unknown(lab: Lab) -> None:
    lab.put(replace(tool("t", tool=HASH), name="op"))

    assert lab.rows("SELECT name FROM tool_calls") == [(None,)]


def test_the_span_s_name_tells_it(lab: Lab) -> None:
    lab.put(replace(tool("t", tool=HASH), name="execute_tool delete_all"))

    assert lab.rows("SELECT name FROM tool_calls") == [("delete_all",)]


def test_hashed_contents_are_none(lab: Lab) -> None:
    """An id that is a hash is the user's own."""
    hashed = {f"gen_ai.tool.call.{part}": HASH for part in ("arguments", "result")}
    lab.put(tool("t", **hashed, **{"gen_ai.conversation.id": HASH}))

    assert lab.rows("SELECT arguments, result FROM tool_calls") == [(None, None)]
    assert lab.rows("SELECT session_id FROM spans") == [(HASH,)]


def test_what_has_no_service_and_no_scope_has_none(lab: Lab) -> None:
    """Neither is an empty text, which `service: null` of a question would not find."""
    lab.put(S("a", service="", scope=""), S("b", at=2))

    assert lab.rows("SELECT service, scope FROM spans ORDER BY start_ns") == [(None, None), ("test", "test")]

"""An answer of which every chunk was written down as a message is one answer."""

from __future__ import annotations

import json
from typing import Any

from clawtrace.dialects.messages import parse_messages

PARIS = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Paris"}}
BEGUN = {**PARIS, "arguments": None}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "content": said}


def message(finish: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "parts": list(parts), "finish_reason": finish}


def parsed(*messages: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    found = parse_messages("genai_parts", json.dumps(messages), "output")
    return [(part.type, part.call_id, part.text) for part in found]


ASKED = ("tool_call", "c1", '{"city":"Paris"}')


def test_pieces_and_the_last_piece_are_one_text() -> None:
    assert parsed(message("", text("It is")), message("", text(" 21.")), message("stop", text(""))) == [
        ("text", None, "It is 21.")
    ]


def test_pieces_before_the_whole_say_nothing_of_their_own() -> None:
    """Each chunk repeats the call that it continues, and the whole states it again: one request."""
    answer = parsed(
        message("", text("Let me ")), message("", text("look.")), message("", BEGUN), message("", BEGUN),
        message("stop", text("Let me look."), PARIS),
    )  # fmt: skip

    assert answer == [("text", None, "Let me look."), ASKED]


def test_a_call_in_pieces_only_is_asked_for_once() -> None:
    assert parsed(message("", BEGUN), message("", PARIS), message("stop", text(""))) == [ASKED]


def test_words_that_nothing_finished_are_no_answer() -> None:
    assert parsed(message("", text("It is")), message("", text(" 2"))) == []


def test_a_whole_without_a_finish_reason_is_an_answer() -> None:
    """Some models never say why they stopped."""
    assert parsed(message("", text("It is")), message("", text(" 21.")), message("", text("It is 21."))) == [
        ("text", None, "It is 21.")
    ]
    assert parsed(message("", text("It is 21."))) == [("text", None, "It is 21.")]


def test_several_answers_to_choose_from_stay_several() -> None:
    assert parsed(message("stop", text("A")), message("stop", text("B"))) == [("text", None, "A"), ("text", None, "B")]


def test_log_events_of_a_stream() -> None:
    """The chunks have no finish reason; of two choices none is a piece of the other."""

    def choice(said: str, index: int = 0, **finish: str) -> dict[str, Any]:
        content = {"role": "model", "parts": [{"text": said, "function_call": None}]}
        return {"event.name": "gen_ai.choice", "index": index, "content": content, **finish}

    def read(*events: dict[str, Any]) -> list[tuple[str | None, str | None]]:
        return [(part.role, part.text) for part in parse_messages("event_list", json.dumps(events), "output")]

    assert read(choice("It is"), choice(" 21."), choice("It is 21.", finish_reason="STOP")) == [
        ("assistant", "It is 21.")
    ]
    assert len(read(choice("A"), choice("B", 1, finish_reason="STOP"))) == 2


def test_log_events_with_geminis_contents() -> None:
    """Every message of the conversation is a `gen_ai.user.message`, also what the model said and the tools returned."""
    call = {"text": None, "function_call": {"id": None, "name": "get_weather", "args": {"city": "Paris"}}}
    response = {"text": None, "function_response": {"id": None, "name": "get_weather", "response": {"c": 21}}}
    events = [
        {"event.name": "gen_ai.user.message", "content": {"role": role, "parts": [part]}}
        for role, part in (("user", {"text": "Go."}), ("model", call), ("user", response))
    ]

    found = parse_messages("event_list", json.dumps(events), "input")
    assert [(part.role, part.type, part.name, part.text) for part in found] == [
        ("user", "text", None, "Go."),
        ("assistant", "tool_call", "get_weather", '{"city":"Paris"}'),
        ("user", "tool_call_response", "get_weather", '{"c":21}'),
    ]

"""Model calls in every generation of the GenAI conventions, and messages that no convention knows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S, agent, asks, chat

GENERATIONS: dict[str, dict[str, Any]] = {
    "0 (usage.prompt_tokens)": {
        "gen_ai.system": "OpenAI",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.prompt_tokens": 1013,
        "gen_ai.usage.completion_tokens": 23,
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "get_weather",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"city": "Paris"}',
    },
    "1 (gen_ai.system, message events)": {
        "gen_ai.system": "openai",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1013,
        "gen_ai.usage.output_tokens": 23,
    },
    "2 (output messages as JSON text)": {
        "gen_ai.provider.name": "openai",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1013,
        "gen_ai.usage.output_tokens": 23,
        "gen_ai.output.messages": asks(("c1", "get_weather", {"city": "Paris"})),
    },
    "3 (structured, cache_creation)": {
        "gen_ai.provider.name": "openai",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1013,
        "gen_ai.usage.output_tokens": 23,
        "gen_ai.usage.cache_creation.input_tokens": 7,
        "gen_ai.output.messages": json.loads(asks(("c1", "get_weather", {"city": "Paris"}))),
    },
    "4 (cache_write)": {
        "gen_ai.provider.name": "openai",
        "gen_ai.operation.name": "generate_content",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1013,
        "gen_ai.usage.output_tokens": 23,
        "gen_ai.usage.cache_write.input_tokens": 7,
        "gen_ai.output.messages": asks(("c1", "get_weather", {"city": "Paris"})),
    },
}


CHOICE = ("gen_ai.choice", {"message": '{"tool_calls": [{"id": "c1", "function": {"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}}]}'})  # fmt: skip


@pytest.mark.parametrize("generation", sorted(GENERATIONS))
def test_every_genai_generation_reads_the_same(lab: Lab, generation: str) -> None:
    """Model, provider, tokens and the requested tool call are the same facts in all five generations."""
    events = [CHOICE] if generation.startswith("1") else []
    lab.put(agent("a"), S("m", "a", 1, 5, "chat", GENERATIONS[generation], events))

    call = lab.rows("SELECT provider, request_model, model, input_tokens, output_tokens, outcome FROM llm_calls")
    assert call == [("openai", "gpt-4o", "gpt-4o", 1013, 23, "ok")]
    assert lab.rows("SELECT name, call_id, arguments, outcome FROM tool_calls") in (
        [("get_weather", "c1", '{"city":"Paris"}', None)],
        [("get_weather", "c1", '{"city": "Paris"}', None)],
    )


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "parts": [{"type": "text", "content": "a\ud83d"}]},
        {"role": [1], "parts": [{"type": "text", "content": "x"}]},
        {"role": 1, "content": "x"},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": 3, "name": 5, "arguments": {}}]},
        {"role": "tool", "tool_call_id": {"a": 1}, "content": "x"},
    ],
)
def test_a_hostile_message_harms_no_fact(lab: Lab, message: dict[str, Any]) -> None:
    lab.put(agent("a"), chat("m", "a", at=1, **{"gen_ai.output.messages": json.dumps([message])}))

    assert lab.totals("llm_calls") == (1,)

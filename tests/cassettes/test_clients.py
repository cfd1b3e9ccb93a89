"""The providers' own clients: what they recorded, they are answered again, to the last field, with the provider gone.

Each is imported where it is used: three seconds that only the worker that runs these tests spends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clawtrace.testing import scripted_model

sys.path.insert(0, str(Path(__file__).parent))

from tapes import playing

STEPS = [
    {
        "when": {"last": "user"},
        "text": "Let me look that up, né.",
        "tool_calls": [{"name": "weather", "arguments": {"city": "Zürich 😀"}}],
        "usage": {"input": 850, "output": 29, "cached": 768},
        "repeat": True,
    },
    {"text": "It is sunny.\nReally.", "usage": {"input": 900, "output": 7}, "repeat": True},
]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}


def chat(url: str, prompt: str, *, stream: bool) -> list[Any]:
    import openai

    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
    messages: list[Any] = [{"role": "user", "content": prompt}]
    with openai.OpenAI(base_url=f"{url}/openai/v1", api_key="any", max_retries=0) as client:
        found: list[Any] = []
        if stream:
            more: Any = {"stream": True, "stream_options": {"include_usage": True}}
            found += [one.model_dump() for one in client.chat.completions.create(model="m", messages=messages, **more)]
        first = client.chat.completions.create(model="m", messages=messages, tools=tools)
        calls = first.choices[0].message
        messages += [calls, {"role": "tool", "tool_call_id": calls.tool_calls[0].id, "content": "sunny"}]  # type: ignore[index]
        second = client.chat.completions.create(model="m", messages=messages, tools=tools)
        return [*found, first.model_dump(), second.model_dump()]


def responses(url: str, prompt: str, *, stream: bool) -> list[Any]:
    import openai

    with openai.OpenAI(base_url=f"{url}/openai/v1", api_key="any", max_retries=0) as client:
        if stream:
            return [one.model_dump() for one in client.responses.create(model="m", input=prompt, stream=True)]
        first = client.responses.create(model="m", input=prompt)
        second = client.responses.create(model="m", input="and?", previous_response_id=first.id)
        return [first.model_dump(), second.model_dump()]


def messages(url: str, prompt: str, *, stream: bool) -> list[Any]:
    import anthropic

    tools: Any = [{"name": "weather", "input_schema": PARAMETERS}]
    asked: Any = {"model": "m", "max_tokens": 99, "tools": tools, "messages": [{"role": "user", "content": prompt}]}
    with anthropic.Anthropic(base_url=f"{url}/anthropic", api_key="any", max_retries=0) as client:
        if stream:
            with client.messages.stream(**asked) as events:
                return [one.model_dump() for one in events]
        return [client.messages.create(**asked).model_dump()]


def gemini(url: str, prompt: str, *, stream: bool) -> list[Any]:
    from google import genai
    from google.genai import types

    asked: Any = {"model": "g", "contents": prompt, "config": types.GenerateContentConfig(temperature=0)}
    options = types.HttpOptions(base_url=f"{url}/gemini")
    with genai.Client(api_key="any", http_options=options) as client:
        if stream:
            found = list(client.models.generate_content_stream(**asked))
        else:
            found = [client.models.generate_content(**asked)]
    return [one.model_dump(exclude={"sdk_http_response"}) for one in found]


def openrouter(url: str, prompt: str, *, stream: bool) -> list[Any]:
    import openai

    asked: Any = {"model": "maker/m", "messages": [{"role": "user", "content": prompt}]}
    with openai.OpenAI(base_url=f"{url}/openrouter/v1", api_key="any", max_retries=0) as client:
        if stream:
            return [one.model_dump() for one in client.chat.completions.create(**asked, stream=True)]
        return [client.chat.completions.create(**asked).model_dump()]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("ask", [chat, responses, messages, gemini, openrouter])
def test_a_client_is_answered_again(tmp_path: Path, ask: Callable[..., list[Any]], stream: bool) -> None:
    import anthropic
    import openai
    from google.genai.errors import ClientError

    refused = (openai.BadRequestError, anthropic.BadRequestError, ClientError)
    tape = tmp_path / "c.yaml"
    with scripted_model(STEPS) as model, playing(tape, "record", model.url) as recording:
        recorded = ask(recording.url, "Is it sunny?", stream=stream)
    first, second = [], []
    for found in (first, second):
        with playing(tape, "replay") as replaying:
            found += ask(replaying.url, "Is it sunny?", stream=stream)
        assert (replaying.replayed, replaying.misses) == (len(model.log), [])

    assert first == second == recorded
    with playing(tape, "replay") as replaying, pytest.raises(refused, match=r"cassette_miss|was not recorded"):
        ask(replaying.url, "Is it raining?", stream=stream)
    assert len(replaying.misses) == 1  # no client tries again
    assert "-" in replaying.misses[0]
    assert "Is it raining?" in replaying.misses[0]

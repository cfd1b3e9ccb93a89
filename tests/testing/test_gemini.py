"""The scripted model as Gemini, spoken to by Google's own client."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

import pytest

from clawtrace.testing import scripted_model

if TYPE_CHECKING:  # a second to import, which only the worker that runs these tests spends
    from google import genai

USAGE = {"input": 850, "output": 29, "cached": 768, "reasoning": 20}
WEATHER = {"name": "get_weather", "arguments": {"city": "Paris"}}
TOOL = {"function_declarations": [{"name": "get_weather", "description": "Weather."}]}
CONFIG = {
    "tools": [TOOL],
    "system_instruction": "You are terse.",
    "automatic_function_calling": {"disable": True},
}


def client(url: str) -> genai.Client:
    from google import genai

    return genai.Client(api_key="any", http_options={"base_url": url})


def test_the_official_client_reads_plain_and_streamed_replies_alike():
    """Text, thoughts, tool call, model name and counts are the same from a plain and from a streamed reply."""
    step = {
        "text": "Let me look that up for you.",
        "reasoning": "Where is Paris?",
        "tool_calls": [WEATHER],
        "usage": USAGE,
        "model": "gemini-3-flash-001",
    }
    with scripted_model([step] * 2) as model, client(model.url) as google:
        asked = {"model": "gemini-3-flash", "contents": "weather?", "config": CONFIG}
        plain = [google.models.generate_content(**asked)]
        streamed = list(google.models.generate_content_stream(**asked))

    assert len(streamed) > 3
    for answer in (plain, streamed):
        parts = [part for one in answer for part in one.candidates[0].content.parts]
        assert "".join(part.text for part in parts if part.text and not part.thought) == step["text"]
        assert "".join(part.text for part in parts if part.thought) == step["reasoning"]
        assert [(one.function_call.name, one.function_call.args) for one in parts if one.function_call] == [
            ("get_weather", {"city": "Paris"})
        ]
        counts = answer[-1].usage_metadata
        assert (counts.prompt_token_count, counts.cached_content_token_count) == (850, 768)
        assert (counts.candidates_token_count, counts.thoughts_token_count, counts.total_token_count) == (9, 20, 879)
        assert answer[-1].candidates[0].finish_reason == "STOP"
        assert answer[-1].model_version == "gemini-3-flash-001"
    assert [(exchange.api, exchange.stream) for exchange in model.log] == [("gemini", False), ("gemini", True)]


def test_conditions_see_a_gemini_request():
    """Model, system prompt, tools and the role of the last message are read from Gemini's form."""
    steps = [
        {"when": {"api": "gemini", "last": "tool"}, "text": "after the tool"},
        {
            "when": {"model": "gemini-3.*", "system": "terse", "user": "weather", "tools": ["get_weather"]},
            "text": "first",
        },
    ]
    from google.genai import types

    user = types.Content(role="user", parts=[types.Part(text="weather?")])
    call = types.Content(role="model", parts=[types.Part.from_function_call(name="get_weather", args={})])
    result = types.Content(
        role="user", parts=[types.Part.from_function_response(name="get_weather", response={"t": 20})]
    )
    with scripted_model(steps) as model, client(model.url) as google:
        texts = [
            google.models.generate_content(model="gemini-3-flash", contents=contents, config=CONFIG).text
            for contents in ([user], [user, call, result])
        ]

    assert texts == ["first", "after the tool"]


@pytest.mark.parametrize(
    ("status", "code"), [(429, "RESOURCE_EXHAUSTED"), (401, "UNAUTHENTICATED"), (503, "UNAVAILABLE"), (500, "INTERNAL")]
)
def test_errors_are_in_googles_words(status, code):
    """A scripted error has the status that Google's client shows, with the Retry-After header."""
    from google.genai import errors

    step = {"error": {"status": status, "message": "no", "retry_after": 2}}
    with scripted_model([step]) as model, client(model.url) as google, pytest.raises(errors.APIError) as raised:
        google.models.generate_content(model="gemini-3-flash", contents="?")

    assert (raised.value.code, raised.value.status, raised.value.message) == (status, code, "no")
    assert raised.value.response.headers["retry-after"] == "2"


def test_arguments_that_are_no_object_are_a_malformed_call():
    """Gemini cannot send arguments that are no object: the answer is empty and says that the call was malformed."""
    step = {"tool_calls": [{"name": "get_weather", "arguments": '{"city": '}], "usage": None}
    with scripted_model([step]) as model, client(model.url) as google:
        answer = google.models.generate_content(model="gemini-3-flash", contents="?")

    assert answer.candidates[0].finish_reason == "MALFORMED_FUNCTION_CALL"
    assert (answer.function_calls, answer.usage_metadata) == (None, None)


def test_a_stream_without_events_is_a_list():
    """StreamGenerateContent without `alt=sse` answers with one JSON list of the same parts."""
    with scripted_model([{"text": "Let me look that up for you."}]) as model:
        url = model.url + "/v1beta/models/gemini-3-flash:streamGenerateContent"
        with urllib.request.urlopen(urllib.request.Request(url, b'{"contents": []}'), timeout=10) as answer:
            parts = json.load(answer)

    texts = [part["candidates"][0]["content"]["parts"][0]["text"] for part in parts]
    assert "".join(texts) == "Let me look that up for you."
    assert [part["candidates"][0].get("finishReason") for part in parts][-2:] == [None, "STOP"]

"""The scripted model server, spoken to by real HTTP clients and by the official clients."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from clawtrace.errors import ConfigError
from clawtrace.testing import load_script, scripted_model

WEATHER = {"name": "get_weather", "arguments": {"city": "Paris"}}
STEPS = [
    {"tool_calls": [WEATHER], "usage": {"input": 812, "output": 19, "cached": 100}},
    {"text": "It is sunny in Paris today.", "usage": {"input": 850, "output": 9}, "model": "gpt-4o-2024-08-06"},
]


def post(url: str, body: object) -> dict:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def test_a_tool_in_a_namespace_is_called_by_both_names():
    """Of the Responses API; a step names the tool as other protocols would, and other tools keep their names."""
    inside = {"type": "namespace", "name": "mcp__weather", "tools": [{"type": "function", "name": "now"}]}
    tools = [{"type": "function", "name": "now"}, inside]
    calls = [{"name": name, "arguments": {}} for name in ("now", "mcp__weather__now")]
    with scripted_model([{"when": {"tools": ["mcp__weather__now"]}, "tool_calls": calls}]) as model:
        said = post(model.url + "/v1/responses", {"model": "m", "input": "?", "tools": tools})

    assert [(call.get("namespace"), call["name"]) for call in said["output"]] == [
        (None, "now"),
        ("mcp__weather", "now"),
    ]


def test_steps_are_used_in_order_and_usage_is_reported():
    """Each step answers once, in order, with its own tool calls, usage and model name."""
    with scripted_model(STEPS) as model:
        first = post(model.url + "/v1/chat/completions", {"model": "gpt-4o", "messages": []})
        second = post(model.url + "/v1/chat/completions", {"model": "gpt-4o", "messages": []})

    call = first["choices"][0]["message"]["tool_calls"][0]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("get_weather", {"city": "Paris"})
    assert first["usage"]["prompt_tokens"] == 812
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 100
    assert first["model"] == "gpt-4o"
    assert second["choices"][0]["message"]["content"] == "It is sunny in Paris today."
    assert second["model"] == "gpt-4o-2024-08-06"
    assert [exchange.step for exchange in model.log] == [0, 1]
    assert model.log[0].tool_calls == [{"id": call["id"], **WEATHER}]


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_may_send_broken_arguments_and_no_usage(stream):
    """A text is sent in place of arguments as it is, and a reply may report no token counts."""
    step = {"tool_calls": [{"name": "get_weather", "arguments": '{"city": '}], "usage": None}
    asked = {"model": "gpt-4o", "messages": [], "stream": stream, "stream_options": {"include_usage": True}}
    with scripted_model([step]) as model:
        request = urllib.request.Request(model.url + "/v1/chat/completions", json.dumps(asked).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read().decode()

    assert ('{\\"city\\": ' in text, '"usage"' in text) == (True, False)
    assert (model.log[0].tool_calls[0]["arguments"], model.log[0].usage) == ('{"city": ', None)


def test_a_request_without_a_step_is_refused_and_logged():
    """A script that is used up answers 400 `script_exhausted`: an unexpected call cannot look like a good one."""
    with scripted_model([]) as model, pytest.raises(urllib.error.HTTPError) as raised:
        post(model.url + "/v1/chat/completions", {"model": "gpt-4o", "messages": []})

    assert raised.value.code == 400
    assert json.load(raised.value)["error"]["type"] == "script_exhausted"
    assert model.log[0].status == 400


def test_conditions_choose_the_step():
    """A step with `when` answers only a request that meets every condition, whatever its place."""
    steps = [
        {"when": {"tools": ["search"]}, "text": "researcher"},
        {"when": {"system": "^You are terse", "last": "user"}, "text": "terse", "repeat": True},
    ]
    terse = {
        "model": "m",
        "messages": [{"role": "system", "content": "You are terse."}, {"role": "user", "content": "?"}],
    }
    armed = {**terse, "tools": [{"type": "function", "function": {"name": "search"}}]}
    with scripted_model(steps) as model:
        answers = [
            post(model.url + "/chat/completions", body)["choices"][0]["message"]["content"]
            for body in (terse, armed, armed, terse)
        ]

    assert answers == ["terse", "researcher", "terse", "terse"]


def test_scripted_errors_keep_status_type_and_retry_header():
    """An `error` step answers with that HTTP status, the error type and the Retry-After header."""
    steps = [{"error": {"status": 429, "type": "rate_limit_error", "message": "slow down", "retry_after": 0}}]
    with scripted_model(steps) as model, pytest.raises(urllib.error.HTTPError) as raised:
        post(model.url + "/v1/messages", {"model": "claude", "messages": []})

    assert raised.value.code == 429
    assert raised.value.headers["retry-after"] == "0"
    assert json.load(raised.value) == {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}


def test_anthropic_input_tokens_leave_cached_ones_out():
    """Anthropic's own convention: input_tokens excludes what was read from or written to the cache."""
    steps = [{"text": "hi", "usage": {"input": 1000, "output": 5, "cached": 600, "cache_write": 100}}]
    with scripted_model(steps) as model:
        reply = post(model.url + "/v1/messages", {"model": "claude", "messages": [{"role": "user", "content": "x"}]})

    assert reply["usage"] == {
        "input_tokens": 300,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 600,
        "output_tokens": 5,
    }


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_openai_sdk_reads_plain_and_streamed_replies_alike(api):
    """The official client gets the same text, tool call and usage from a plain and from a streamed reply."""
    from openai import OpenAI

    steps = [{**STEPS[0], "text": "Let me look that up for you."}] * 2
    with scripted_model(steps) as model, OpenAI(base_url=model.url + "/v1", api_key="any") as client:
        if api == "chat":
            asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": "weather?"}]}
            plain = client.chat.completions.create(**asked)
            with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                streamed = stream.get_final_completion()
            seen = [
                (c.choices[0].message.content, c.choices[0].message.tool_calls[0].function.name, c.usage.prompt_tokens)
                for c in (plain, streamed)
            ]
        else:
            asked = {"model": "gpt-4o", "input": "weather?"}
            plain = client.responses.create(**asked)
            with client.responses.stream(**asked) as stream:
                streamed = stream.get_final_response()
            seen = [(r.output_text, r.output[1].name, r.usage.input_tokens) for r in (plain, streamed)]

    assert seen == [("Let me look that up for you.", "get_weather", 812)] * 2
    assert [exchange.stream for exchange in model.log] == [False, True]


def test_anthropic_stream_holds_the_whole_reply():
    """The events of a streamed Anthropic reply add up to the plain one's text and tool input."""
    steps = [{"text": "Looking it up, one moment.", "tool_calls": [WEATHER]}]
    body = {"model": "claude", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    with scripted_model(steps) as model:
        request = urllib.request.Request(model.url + "/v1/messages", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            events = [json.loads(line[6:]) for line in answer if line.startswith(b"data: ")]

    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(d["text"] for d in deltas if d["type"] == "text_delta") == "Looking it up, one moment."
    assert json.loads("".join(d["partial_json"] for d in deltas if d["type"] == "input_json_delta")) == {
        "city": "Paris"
    }
    assert events[-1]["type"] == "message_stop"


def test_the_anthropic_sdk_reads_plain_and_streamed_replies_alike():
    """The official client gets the same text, tool call and usage from a plain and from a streamed reply."""
    from anthropic import Anthropic

    step = {**STEPS[0], "text": "Let me look that up for you."}
    asked = {"model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": "weather?"}]}
    with scripted_model([step] * 2) as model, Anthropic(base_url=model.url, api_key="any") as client:
        plain = client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            streamed = stream.get_final_message()

    for message in (plain, streamed):
        text, call = message.content
        assert (text.text, call.name, call.input) == (step["text"], "get_weather", {"city": "Paris"})
        assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (712, 100)
        assert message.usage.output_tokens == 19


def test_official_clients_know_scripted_errors_for_what_they_are():
    """Each client has the scripted statuses as its own errors, with the Retry-After header."""
    import anthropic
    import openai

    steps = [{"error": {"status": status, "retry_after": 3}} for status in (429, 401, 429, 401, 529)]
    with scripted_model(steps) as model:
        one = openai.OpenAI(base_url=model.url + "/v1", api_key="any", max_retries=0)
        two = anthropic.Anthropic(base_url=model.url, api_key="any", max_retries=0)
        asked = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
        with one, two:
            with pytest.raises(openai.RateLimitError) as limited:
                one.chat.completions.create(**asked)
            with pytest.raises(openai.AuthenticationError):
                one.responses.create(model="m", input="?")
            with pytest.raises(anthropic.RateLimitError) as limited_too:
                two.messages.create(max_tokens=5, **asked)
            with pytest.raises(anthropic.AuthenticationError):
                two.messages.create(max_tokens=5, **asked)
            with pytest.raises(anthropic.APIStatusError) as overloaded:
                two.messages.create(max_tokens=5, **asked)

    assert [error.value.response.headers["retry-after"] for error in (limited, limited_too)] == ["3", "3"]
    assert [limited.value.type, limited_too.value.body["error"]["type"]] == ["rate_limit_error"] * 2
    assert overloaded.value.body["error"]["type"] == "overloaded_error"


def test_a_delayed_answer_takes_its_time():
    """An answer comes no earlier than its delay is over."""
    with scripted_model([{"text": "late", "delay_ms": 200}]) as model:
        started = time.monotonic()
        post(model.url + "/v1/messages", {})

    assert time.monotonic() - started >= 0.2


def test_an_answer_may_be_unreadable_or_no_answer_at_all():
    """`body` is sent as it is with 200, and `disconnect` closes the connection; both are in the log."""
    with scripted_model([{"body": "<html>"}, {"disconnect": True}]) as model:
        with urllib.request.urlopen(model.url + "/v1/messages", b"{}", timeout=10) as answer:
            text = answer.read()
        with pytest.raises(ConnectionError):
            urllib.request.urlopen(model.url + "/v1/messages", b"{}", timeout=10)

    assert text == b"<html>"
    assert [(exchange.status, exchange.text) for exchange in model.log] == [(200, None), (0, None)]


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/m:streamGenerateContent?alt=sse"]
)
def test_a_stream_may_break_off(path: str):
    """The client gets so many events and an error; the log has the whole answer. A reply in one piece does not begin."""
    with scripted_model([{"text": "long " * 20, "cut_after": 2}, {"text": "long", "cut_after": 1}]) as model:
        request = urllib.request.Request(model.url + path, b'{"stream": true}')
        with urllib.request.urlopen(request, timeout=10) as answer, pytest.raises(http.client.IncompleteRead) as raised:
            answer.read()
        with pytest.raises(ConnectionError):
            urllib.request.urlopen(model.url + "/v1/messages", b"{}", timeout=10)

    assert raised.value.partial.count(b"data: ") == 2
    assert [(exchange.status, exchange.text) for exchange in model.log] == [(0, "long " * 20), (0, None)]


@pytest.mark.parametrize("body", [b"[1]", b"not json", b""])
def test_a_body_that_is_no_object_is_a_client_error(body):
    """A broken request is answered with 400 and does not use a step up."""
    with scripted_model(STEPS) as model:
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(urllib.request.Request(model.url + "/v1/messages", body), timeout=10)
        assert raised.value.code == 400
        assert model.log == []


def test_a_wrong_script_is_an_error_that_names_the_key(tmp_path: Path):
    """A misspelt key is a configuration error with its path."""
    script = tmp_path / "script.yaml"
    script.write_text("steps:\n- txt: hello\n")

    with pytest.raises(ConfigError, match=r"script\.yaml:2:3: `steps\.0\.txt` .*Did you mean `text`\?"):
        load_script(script)


@pytest.mark.parametrize(
    "text", [b"steps: [{text: \xe9}]", b"steps: [{text: 2024-13-45}]", b"steps: " + b"[" * 5_000, b""]
)
def test_a_script_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path, text: bytes):
    """Whatever is wrong with the file itself, it is a configuration error."""
    script = tmp_path / "script.yaml"
    script.write_bytes(text)

    with pytest.raises(ConfigError, match=r"script\.yaml"):
        load_script(script)

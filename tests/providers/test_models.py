"""Models of providers: which one is meant, what it lacks, and what its requests hold, sent to the scripted model."""

from __future__ import annotations

import asyncio
import sys

import pytest

from clawtrace.errors import ProviderError
from clawtrace.providers.models import ModelChoice, choose_model, open_model, request_settings, why_unavailable
from clawtrace.testing import scripted_model

KEYS = {
    "OPENROUTER_API_KEY": "key-of-openrouter",
    "OPENAI_API_KEY": "key-of-openai",
    "ANTHROPIC_API_KEY": "key-of-anthropic",
    "GEMINI_API_KEY": "key-of-google",
    "MY_KEY": "my-key",
}


@pytest.mark.parametrize(
    ("model", "given", "chosen"),
    [
        ("openai/gpt-4o-mini", {}, ("openai/gpt-4o-mini", "openrouter")),
        ("openai/gpt-4o-mini:free", {}, ("openai/gpt-4o-mini:free", "openrouter")),
        ("anthropic:claude-sonnet-5", {}, ("claude-sonnet-5", "anthropic")),
        ("gpt-5", {"provider": "openai"}, ("gpt-5", "openai")),
        ("anthropic:claude", {"provider": "openai-chat"}, ("anthropic:claude", "openai-chat")),
        ("llama3:8b", {"base_url": "http://here/v1"}, ("llama3:8b", "openai-compatible")),
        ("google:gemini-3-flash", {"base_url": "http://here"}, ("gemini-3-flash", "google")),
    ],
)
def test_a_name_says_which_provider_is_meant(model, given, chosen):
    """A name alone is OpenRouter's; a known provider before a colon, a `provider` and a `base_url` change that."""
    choice = choose_model(model, **given)
    assert (choice.name, choice.provider) == chosen


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        (
            "openai/gpt-4o",
            {},
            "the key of the provider `openrouter` is missing: set the environment variable OPENROUTER_API_KEY",
        ),
        (
            "google:gemini-3",
            {},
            "set the environment variable GOOGLE_API_KEY or GEMINI_API_KEY, or name another variable",
        ),
        ("anthropic:claude", {"api_key_env": "MY_KEY"}, "set the environment variable MY_KEY"),
        ("gpt", {"provider": "opnai"}, "there is no provider `opnai`"),
        ("groq:llama", {}, "a package of the provider `groq` is missing. Please install the `groq` package"),
        ("m", {"provider": "openai-compatible"}, "needs a `base_url`"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_asked(model, given, message):
    """A missing key, package or address, and an unknown provider, are named with what to do."""
    assert message in (why_unavailable(choose_model(model, **given), {}) or "")


def test_a_name_that_openrouter_cannot_have_is_refused():
    """OpenRouter's names begin with the maker of the model."""
    assert "must be prefixed" in (why_unavailable(choose_model("gpt4o_mini"), KEYS) or "")


def test_without_pydantic_ai_the_extra_is_named(monkeypatch):
    """Where pydantic-ai is not installed, the message says which extra has it."""
    monkeypatch.setitem(sys.modules, "pydantic_ai.exceptions", None)
    with pytest.raises(ProviderError, match=r"uv tool install --force '\.\[providers\]'"):
        open_model(choose_model("openai/gpt-4o"), KEYS)


@pytest.mark.parametrize(
    ("choice", "path", "key"),
    [
        (ModelChoice("openai/gpt-4o", "openrouter", "{}/v1"), "/v1/chat/completions", "key-of-openrouter"),
        (ModelChoice("gpt-4o", "openai", "{}/v1"), "/v1/responses", "key-of-openai"),
        (ModelChoice("gpt-4o", "openai-chat", "{}/v1", "MY_KEY"), "/v1/chat/completions", "my-key"),
        (ModelChoice("m", "openai-compatible", "{}/v1"), "/v1/chat/completions", "api-key-not-set"),
        (ModelChoice("claude", "anthropic", "{}"), "/v1/messages", "key-of-anthropic"),
    ],
)
def test_a_model_is_asked_where_it_is_with_its_key_and_parameters(choice, path, key):
    """The request goes to the given address with the provider's key, and holds parameters of both kinds."""
    with scripted_model([{"text": "Paris."}]) as server:
        served = ModelChoice(choice.name, choice.provider, choice.base_url.format(server.url), choice.api_key_env)
        answer = asyncio.run(_ask(served, {"temperature": 0.0, "reasoning": {"effort": "none"}}))
        key_sent = open_model(served, KEYS).provider.client.api_key

    asked = server.log[0]
    assert (answer, asked.path, asked.model) == ("Paris.", path, choice.name)
    assert (asked.request["temperature"], asked.request["reasoning"]) == (0.0, {"effort": "none"})
    assert key_sent == key


def test_openrouter_is_asked_where_its_variable_says():
    """OPENROUTER_BASE_URL moves the provider, so that the seed's files run against a local server."""
    with scripted_model([{"text": "Paris."}]) as server:
        env = {**KEYS, "OPENROUTER_BASE_URL": server.url + "/v1"}
        assert asyncio.run(_ask(choose_model("openai/gpt-4o"), {}, env)) == "Paris."


def test_a_parameter_that_a_provider_cannot_take_is_refused():
    """A key that would be dropped in silence is an error that names it."""
    said = why_unavailable(choose_model("google:gemini-3-flash"), KEYS, {"reasoning": {"effort": "none"}})
    assert "the provider `google` takes no parameter `reasoning`" in (said or "")
    thinking = {"google_thinking_config": {"thinking_budget": 0}}
    assert why_unavailable(choose_model("google:gemini-3-flash"), KEYS, thinking) is None


def test_a_choice_knows_which_variables_it_reads():
    """A process that asks a model is given the provider's variables, and no other provider's key."""
    assert choose_model("openai/gpt-4o").variables == ("OPENROUTER_*",)
    assert choose_model("m", base_url="http://here/v1", api_key_env="MY_KEY").variables == ("MY_KEY",)


async def _ask(choice, options, env=KEYS):
    from pydantic_ai import Agent

    model = open_model(choice, env)
    async with Agent(model, model_settings=request_settings(model, choice, options)) as agent:
        return (await agent.run("What is the capital of France?")).output

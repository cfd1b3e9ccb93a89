"""The `genai-prices` tables: only models that they name, at the time of the call."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime

import pytest
from genai_prices import Usage, calc_price
from genai_prices.data import providers

from clawtrace.pricing import ModelCall, Price, Pricing
from clawtrace.pricing.genai import _leaves, _providers
from clawtrace.pricing.rates import provider_names

AT = int(datetime(2026, 6, 1, tzinfo=UTC).timestamp()) * 10**9


def price(provider: str | None, model: str, **tokens: int | None) -> Price:
    given = {"input_tokens": 1000, "output_tokens": 100, **tokens}
    return Pricing().price_call(provider, model, at_ns=AT, **given)


@pytest.mark.parametrize(
    ("provider", "model", "table", "reference"),
    [
        ("openai", "gpt-4o", "openai", "gpt-4o"),
        ("openai", "gpt-4o-mini", "openai", "gpt-4o-mini"),
        ("openai.responses", "gpt-4o", "openai", "gpt-4o"),
        ("openai", "gpt-4o-2024-05-13", "openai", "gpt-4o-2024-05-13"),
        (None, "gpt-4o-20240513", "openai", "gpt-4o-2024-05-13"),
        (None, "openai/gpt-4o-mini", "openai", "gpt-4o-mini"),
        (None, "openai:gpt-4o-mini", "openai", "gpt-4o-mini"),
        ("anthropic", "claude-sonnet-4-6-20260101", "anthropic", "claude-sonnet-4-6"),
        ("anthropic", "claude-4.5-opus-20251101", "anthropic", "claude-opus-4-5"),
        ("anthropic", "claude-sonnet-4-20250514", "anthropic", "claude-sonnet-4-0"),
        ("aws.bedrock", "us.anthropic.claude-3-5-sonnet-20240620-v1:0", "aws", "claude-3-5-sonnet-20240620"),
        ("aws.bedrock", "us.mistral.mistral-7b-instruct-v0", "aws", "mistral.mistral-7b-instruct-v0:2"),
        ("gcp.vertex_ai", "gemini-2.5-flash", "google", "gemini-2.5-flash"),
        ("azure.ai.openai", "gpt-4o", "azure", "gpt-4o"),
        ("x_ai", "grok-4.3", "x-ai", "grok-4.3"),
        (" Cursor ", "composer-2.5[fast=true]", "cursor", "composer-2.5-fast"),
    ],
)
def test_a_model_that_the_tables_name_has_their_price(provider, model, table, reference):
    """However telemetry writes provider and model, the price is the table's own for that model."""
    usage = Usage(input_tokens=1000, output_tokens=100)
    at = datetime.fromtimestamp(AT / 1e9, tz=UTC)
    expected = calc_price(usage, reference, provider_id=table, genai_request_timestamp=at).total_price

    assert price(provider, model) == Price(float(expected), "genai-prices")


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-4o-megasuper"),
        ("anthropic", "claude-sonnet-4-6-mini"),
        ("anthropic", "claude-haiku-5-5@x-large"),
        ("gcp.vertex_ai", "not-claude-3-opus-at-all"),
        ("aws", "my-amazon.nova-lite-tuned"),
        ("openai-compatible", "gpt-4o"),
        ("my-openai-proxy", "gpt-4o"),
        ("ollama", "llama3"),
        (None, "o"),
        (None, "scripted-model"),
    ],
)
def test_a_model_that_the_tables_only_resemble_has_no_price(provider, model):
    """A prefix, a substring, or a provider that merely contains a known name is no price."""
    assert price(provider, model) == Price(None, None)


@pytest.mark.parametrize("at", [datetime(2024, 8, 1, 20, tzinfo=UTC), datetime(2026, 6, 1, 3, tzinfo=UTC)])
def test_every_price_is_that_of_the_package(at):
    """The table that is carried along, and what is computed from it, say what the package says of every model."""
    usages = [
        {"input_tokens": 1000, "output_tokens": 100, "cache_read": 0, "cache_write": 0, "reasoning": 0},
        {"input_tokens": 900_000, "output_tokens": 7, "cache_read": 300, "cache_write": 500, "reasoning": 5},
        {"input_tokens": 210_000, "output_tokens": 0, "cache_read": 210_000, "cache_write": 0, "reasoning": 0},
        {"input_tokens": 100, "output_tokens": 9, "cache_read": 101, "cache_write": 0, "reasoning": 10},
    ]
    compared, wrong = 0, []
    for provider in providers:
        for model in provider.models:
            if provider.find_model(model.id, all_providers=providers) is not model:
                continue
            prices = model.get_prices(at)
            for said in usages:
                if any(
                    said[f"{side}_tokens"] and getattr(prices, f"{side}_mtok") is None for side in ("input", "output")
                ):
                    continue
                usage = Usage(
                    input_tokens=said["input_tokens"], output_tokens=said["output_tokens"],
                    cache_read_tokens=said["cache_read"], cache_write_tokens=said["cache_write"],
                    output_reasoning_tokens=said["reasoning"],
                )  # fmt: skip
                try:
                    expected = float(model.calc_price(usage, provider, genai_request_timestamp=at).total_price)
                except ValueError:
                    expected = None
                compared += 1
                found = Pricing().price_call(provider.id, model.id, at_ns=int(at.timestamp()) * 10**9, **said).usd
                if found != expected:
                    wrong.append((provider.id, model.id, said, found, expected))

    assert compared > 7_000, compared
    assert wrong == []


def test_no_prefix_or_substring_match_of_the_tables_prices_a_longer_name():
    """For every pattern in the tables: the matching text with a made-up word behind it is not priced by it."""
    wrong = []
    for provider in _providers():
        for model in provider.models:
            for kind, text in _leaves(model.match):
                name = f"{text}-zzgarbage"
                if kind in ("starts_with", "contains") and price(provider.id, name) != Price(None, None):
                    wrong.append((provider.id, name))
    assert wrong == []


def test_every_equality_of_the_tables_is_priced_or_lacks_a_token_price():
    """What the tables state by name is found: our stricter matching loses no stated model of the big providers."""
    lost = []
    for provider in _providers():
        if provider.id not in ("openai", "anthropic", "google", "mistral", "groq", "x-ai", "deepseek"):
            continue
        for model in provider.models:
            for kind, text in _leaves(model.match):
                if kind == "equals" and provider.find(text) is model:
                    prices = model.prices_at(datetime.fromtimestamp(AT / 1e9, tz=UTC))
                    if {"input", "output"} <= prices.keys() and price(provider.id, text, reasoning=0).usd is None:
                        lost.append((provider.id, text))
    assert lost == []


def test_the_price_is_that_of_the_calls_time():
    """A call before a price cut has the old price, a call after it the new one."""
    changed = [
        (provider.id, model.id, date.fromisoformat(model.prices[1]["from"]))
        for provider in _providers()
        for model in provider.models
        if len(model.prices) == 2 and "from" in model.prices[1] and provider.find(model.id) is model
        if all(isinstance(prices.get("input"), str) and "output" in prices for prices in model.prices)
        if model.prices[0]["input"] != model.prices[1]["input"]
    ]
    assert changed
    for provider, model, day in changed:
        start = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 10**9
        calls = [ModelCall(provider, model, 10**6, 0, 0, 0, 0, at) for at in (start - 1, start)]
        before, after = (Pricing().price_call(*call) for call in calls)
        assert before.usd != after.usd, (provider, model)


def test_cached_tokens_are_paid_at_their_own_price():
    """Cached input is taken out of the input and paid at the cache price: cheaper, and not free."""
    none, half, all_ = (price("openai", "gpt-4o", cache_read=n).usd for n in (0, 500, 1000))

    assert none > half > all_ > 0
    assert none - half == pytest.approx(half - all_)


@pytest.mark.parametrize("tokens", [{"input_tokens": None}, {"output_tokens": None}])
def test_unknown_tokens_make_no_price(tokens):
    """Unknown is not zero."""
    assert price("openai", "gpt-4o", **tokens) == Price(None, None)


def test_output_tokens_without_an_output_price_make_no_price():
    """An embedding model has an input price only; a call with output tokens is not priced at half."""
    assert price("openai", "text-embedding-3-large", output_tokens=0).usd is not None
    assert price("openai", "text-embedding-3-large", output_tokens=10) == Price(None, None)


def test_a_models_entry_in_the_project_goes_before_the_tables():
    """`model_pricing` wins where it names the model, and leaves all others to the tables."""
    pricing = Pricing.from_mapping({"gpt-4o": {"input_per_1m": 1000, "output_per_1m": 0}})

    assert pricing.price_call("openai", "gpt-4o", 1000, 1) == Price(1.0, "model_pricing")
    assert pricing.price_call("openai", "gpt-4o-mini", 1000, 1).source == "genai-prices"


def test_provider_names_are_whole_names():
    """The aliases never map a name that only contains a provider's."""
    assert provider_names("azure.ai.openai") == ("azure.ai.openai", "azure")
    assert provider_names("OpenAI") == ("openai",)
    assert provider_names("openai.responses") == ("openai.responses", "openai")
    assert provider_names("google.vertex.chat") == ("google.vertex.chat", "google")
    assert "openai" not in provider_names("openai-compatible")


def test_the_tables_are_not_read_before_they_are_needed():
    """Pricing what the project itself prices reads no price table, and no price loads the package."""
    program = (
        "import sys; from clawtrace.pricing import Pricing; from clawtrace.pricing.genai import _providers\n"
        "p = Pricing.from_mapping({'m': {'input_per_1m': 1, 'output_per_1m': 1}})\n"
        "assert p.price_call(None, 'm', 1, 1).usd; assert not _providers.cache_info().currsize\n"
        "assert p.price_call('openai', 'gpt-4o', 1, 1).usd; assert _providers.cache_info().currsize\n"
        "assert not sys.modules.keys() & {'genai_prices', 'asyncio', 'httpx', 'httpx2'}\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize(
    ("provider", "model", "none_written"),
    [
        ("openai", "gpt-4o-2024-08-06", True),
        (None, "openai/gpt-4o", True),
        ("gcp.gemini", "gemini-2.5-flash", True),
        ("anthropic", "claude-sonnet-4-5-20250929", False),
        ("openai", "claude-sonnet-4-5", False),
        ("openai-compatible", "gpt-4o", False),
        ("openai", "gpt-3.5-turbo", False),
        ("openai", "house-model", False),
    ],
)
def test_a_model_whose_cache_is_priced_and_writing_to_it_is_not_writes_none(provider, model, none_written):
    """Nothing is said of a model that the tables do not name, or whose cached tokens have no price."""
    assert Pricing().writes_no_cache(provider, model) is none_written


def test_a_project_that_prices_cache_writes_is_believed():
    own = {"gpt-4o": {"input_per_1m": 1, "output_per_1m": 1, "cache_write_per_1m": 2}}

    assert not Pricing.from_mapping(own).writes_no_cache("openai", "gpt-4o")

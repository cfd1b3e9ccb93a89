"""A cost whose cached tokens are unknown is an interval: judged and printed as one (spec: span-model.md §6)."""

from __future__ import annotations

from typing import Any

import pytest
from building import Lab, chat

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.model.verdict import Status, Verdict
from clawtrace.pricing import ModelCall, Pricing
from clawtrace.support.figures import cost_of
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}
PRICES = Pricing.from_mapping(
    {"m": {"input_per_1m": 10, "output_per_1m": 20, "cache_read_per_1m": 1, "cache_write_per_1m": 12.5}}
)
USED = {"gen_ai.response.model": "m", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 100_000,
        "gen_ai.usage.output_tokens": 0}  # fmt: skip
KNOWN = {"gen_ai.usage.cache_read.input_tokens": 0, "gen_ai.usage.cache_creation.input_tokens": 0}


def lab(**attrs: Any) -> Lab:
    return Lab(pricing=PRICES).put(chat("m", **USED | attrs))


def cost(of: Lab, limit: float) -> Verdict:
    of.facts.ensure(["r"])
    (result,) = evaluate(of.store, [parse_assertion({"type": "trace_cost", "max_usd": limit})], ["r"], DIALECTS)
    return result.verdicts[0]


@pytest.mark.parametrize(
    ("attrs", "low", "high"),
    [
        (KNOWN, 1.0, 1.0),
        ({}, 0.1, 1.25),
        ({"gen_ai.usage.cache_read.input_tokens": 40_000}, 0.64, 0.79),
        ({"gen_ai.usage.cache_creation.input_tokens": 0}, 0.1, 1.0),
    ],
    ids=["known", "unknown", "written is unknown", "read is unknown"],
)
def test_the_interval_of_a_call(attrs: dict[str, int], low: float, high: float) -> None:
    assert lab(**attrs).totals("cost_low", "cost_high") == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("limit", "status", "said"),
    [
        (2, Status.PASS, "at most 1.25 USD"),
        (0.5, Status.INCONCLUSIVE, "from 0.1 to 1.25 USD"),
        (0.05, Status.FAIL, "at least 0.1 USD"),
    ],
)
def test_judged_as_an_interval(limit: float, status: Status, said: str) -> None:
    verdict = cost(lab(), limit)

    assert verdict.status is status
    assert said in verdict.message


def test_printed_as_a_bound() -> None:
    low, high = lab().totals("cost_low", "cost_high")

    assert cost_of({"cost_low": low, "cost_high": high, "priced_calls": 1}) == "$0.1000 to $1.25"
    assert cost_of({"cost_low": high, "cost_high": high, "priced_calls": 1}) == "$1.25"
    assert cost_of({"cost_low": 0.00010, "cost_high": 0.00011}) == "$0.0001"


def test_tables_without_a_price_for_cached_tokens_are_exact() -> None:
    call = ModelCall("openai", "gpt-4", 1000, 10)
    plain = Pricing().price_call(*call).usd

    assert plain is not None
    assert Pricing().bounds(call, plain) == (plain, plain)


def test_a_cost_of_nothing_computed_from_no_usage_is_unknown() -> None:
    """Pydantic AI writes it where a stream breaks off before its usage."""
    silent = {"gen_ai.usage.input_tokens": None, "gen_ai.usage.output_tokens": None}

    assert lab(**silent, **{"operation.cost": 0.0}).totals("cost_high") == (None,)
    assert lab(**{"operation.cost": 0.0}).totals("cost_high") == (0,)

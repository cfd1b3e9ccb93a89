"""The price table that clawtrace carries, made from the package `genai-prices`.

Importing that package loads an updater with an HTTP client and asyncio: a sixth of a short command, though nothing is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from importlib.metadata import version
from typing import Any

from genai_prices.data import providers
from genai_prices.types import ConditionalPrice, ModelPrice, Provider, StartDateConstraint, TieredPrices

KINDS = {
    "input": "input_mtok", "output": "output_mtok", "cache_read": "cache_read_mtok", "cache_write": "cache_write_mtok",
    "reasoning": "output_reasoning_mtok", "thousand_requests": "requests_kcount",
}  # fmt: skip
"""The prices that tokens of text have, dollars for a million; and what a request costs, dollars for a thousand."""


def price_table() -> str:
    """Return the table in lines of JSON: a notice, then a block for each provider, what tells it and then its models."""
    notice = (
        f"genai-prices {version('genai-prices')}, (c) Pydantic Services Inc., MIT License; written by docs/generate.py"
    )
    return "\n\n".join((json.dumps({"from": notice}), *("\n".join(_lines(provider)) for provider in providers))) + "\n"


def _lines(provider: Provider) -> Iterator[str]:
    match = None if provider.model_match is None else _match(provider.model_match)
    yield json.dumps({"id": provider.id, "match": match, "fallback": provider.fallback_model_providers or []})
    for model in provider.models:
        yield json.dumps({"id": model.id, "match": _match(model.match), "prices": _dated(model.prices)})


def _match(match: Any) -> dict[str, Any]:
    ((kind, value),) = vars(match).items()
    return {kind.rstrip("_"): value if isinstance(value, str) else [_match(one) for one in value]}


def _dated(prices: ModelPrice | list[ConditionalPrice]) -> list[dict[str, Any]]:
    if isinstance(prices, ModelPrice):
        return [_prices(prices)]
    return [_condition(one.constraint) | _prices(one.prices) for one in prices]


def _condition(constraint: Any) -> dict[str, Any]:
    if constraint is None:
        return {}
    if isinstance(constraint, StartDateConstraint):
        return {"from": constraint.start_date.isoformat()}
    return {"between": [_utc(constraint.start_time), _utc(constraint.end_time)]}


def _utc(at: time) -> str:
    if at.tzinfo is not None:
        at = datetime.combine(date(1970, 1, 1), at).astimezone(UTC).time()
    return at.isoformat()


def _prices(prices: ModelPrice) -> dict[str, Any]:
    said = vars(prices)
    found = {kind: _price(said[key]) for kind, key in KINDS.items() if said.get(key) is not None}
    if any("cache_write" in key and value is not None for key, value in said.items()):
        assert "cache_write" in found, "a model whose cache is written only for an hour"
    return found


def _price(price: Any) -> Any:
    if isinstance(price, TieredPrices):
        return [str(price.base), *([tier.start, str(tier.price)] for tier in price.tiers)]
    return str(price)

"""Prices from the `genai-prices` package, taken only where it names the very model.

What the package does (0.2): it finds a provider (by exact id, else by a substring of the given id), walks that
provider's models in order and takes the first whose *match* holds for the lower-cased reference. Most matches are
equalities; some are prefixes or substrings (``claude-sonnet-4-6…``, ``…claude-3-opus…``), under which a model that
the table does not know is priced as its neighbour. So: the provider is looked up by whole name here, and a match
counts only when the table states the requested name: as an equality, as an anchored regular expression, or
when the matching text has the same bare name. A dated release that the table does not list apart has the price of its
bare name. The package is imported when the first call needs it and is never asked to update itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from clawtrace.model.model_names import bare_model_name, model_name
from clawtrace.pricing.providers import provider_names

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

__all__ = ["genai_cost", "writes_no_cache"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _providers() -> list[Provider]:
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot().providers


def _leaves(match: Any) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) of every clause that can decide alone: those under `or`, and single ones."""
    for part in getattr(match, "or_", None) or (match,):
        if hasattr(part, "or_"):
            yield from _leaves(part)
        elif not hasattr(part, "and_"):
            yield from ((kind, text) for kind, text in vars(part).items())


def _names(model: ModelInfo, reference: str) -> bool:
    """Whether `model` states `reference`, and does not merely match a part of it."""
    bare = bare_model_name(reference)
    if reference == model.id.lower() or bare == bare_model_name(model.id):
        return True
    for kind, text in _leaves(model.match):
        if kind == "regex":
            if re.fullmatch(text, reference):
                return True
        elif reference == text.lower() or (kind != "equals" and bare == bare_model_name(text.rstrip("@:-./"))):
            return True
    return False


def _candidates(provider: str | None, model: str) -> Iterator[tuple[Provider, str]]:
    """Yield the providers to look in, with the model's name as that provider writes it."""
    known = provider is not None and provider.strip().lower() not in ("", "litellm")
    if known:
        assert provider is not None
        found = next((one for name in provider_names(provider) for one in _providers() if one.id == name), None)
        if found:
            yield found, model
        return
    if "/" in model:
        prefix, rest = model.split("/", 1)
        yield from _candidates(prefix, rest)
        return
    spellings = (model, bare_model_name(model))
    for table in _providers():
        if table.model_match is not None and any(map(table.model_match.is_match, spellings)):
            yield table, model
            return


@lru_cache(maxsize=4096)
def _find(provider: str | None, model: str) -> tuple[Provider, ModelInfo] | None:
    """Return the table's entry for a model, or None when it does not name that model."""
    for table, reference in _candidates(provider, model.strip().lower()):
        for wanted in dict.fromkeys((reference, *model_name(reference))):
            found = table.find_model(wanted, all_providers=_providers())
            if found is not None and _names(found, wanted):
                return table, found
    return None


def genai_cost(provider: str | None, model: str, tokens: dict[str, int | None], at_ns: int | None) -> Decimal | None:
    """Return what the tables say a call cost, in US dollars; None when they cannot say.

    Args:
        provider: Provider as recorded; None when it was not, then it follows from the model's name alone.
        model: Model name as recorded.
        tokens: ``input``, ``output`` (both known), ``cache_read``, ``cache_write``, ``reasoning``; None is unknown.
        at_ns: When the call was made, nanoseconds since the epoch; None means the newest price.
    """
    from genai_prices.types import Usage

    found = _find(provider, model)
    if found is None:
        return None
    table, info = found
    at = datetime.now(UTC) if at_ns is None else _EPOCH + timedelta(microseconds=at_ns // 1000)
    prices = info.get_prices(at)
    for kind in ("input", "output"):
        if tokens[kind] and getattr(prices, f"{kind}_mtok") is None:
            return None
    if prices.output_reasoning_mtok is not None and tokens["reasoning"] is None:
        return None
    usage = Usage(
        input_tokens=tokens["input"],
        output_tokens=tokens["output"],
        cache_read_tokens=tokens["cache_read"] or 0,
        cache_write_tokens=tokens["cache_write"] or 0,
        output_reasoning_tokens=tokens["reasoning"] or 0,
    )
    try:
        return info.calc_price(usage, table, genai_request_timestamp=at).total_price
    except ValueError:  # contradictory counts, for example more cached than input tokens
        return None


@lru_cache(maxsize=4096)
def writes_no_cache(provider: str | None, model: str) -> bool:
    """Return whether no request to a model writes to a cache that is counted.

    So it is where the tables have a price of its cached tokens, and never had one of writing them.
    """
    found = _find(provider, model)
    if found is None:
        return False
    stated = found[1].prices
    prices = [vars(dated.prices) for dated in stated] if isinstance(stated, list) else [vars(stated)]
    written = any(value is not None for one in prices for key, value in one.items() if "cache_write" in key)
    return not written and any(one.get("cache_read_mtok") is not None for one in prices)

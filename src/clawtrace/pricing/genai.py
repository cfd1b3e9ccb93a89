"""Prices from the tables of `genai-prices`, taken only where they name the very model.

What that package does (0.2): it finds a provider (by exact id, else by a substring of the given id), walks that
provider's models in order and takes the first whose *match* holds for the lower-cased reference. Most matches are
equalities; some are prefixes or substrings (``claude-sonnet-4-6…``, ``…claude-3-opus…``), under which a model that
the table does not know is priced as its neighbour. So: the provider is looked up by whole name here, and a match
counts only when the table states the requested name: as an equality, as an anchored regular expression, or
when the matching text has the same bare name. A dated release that the table does not list apart has the price of its
bare name.

The tables are carried along (``prices.jsonl``, written by ``docs/price_table.py``), a block for each provider, of which only
those are read that are asked: importing the package loads an HTTP client and asyncio, which costs more than judging a run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from clawtrace.model.model_names import bare_model_name, model_name
from clawtrace.pricing.rates import Rates, provider_names

__all__ = ["genai_rates", "writes_no_cache"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLION = 1_000_000
_DATE = re.compile(r"-(20[0-9]{2})(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])(?=-|:|$)")
"""A date without dashes, as some gateways write it behind a name."""


class _Model:
    """One model of a provider."""

    def __init__(self, line: str) -> None:
        said = json.loads(line)
        self.id: str = said["id"]
        self.match: Mapping[str, Any] = said["match"]
        self.prices: Sequence[Mapping[str, Any]] = said["prices"]
        """Those of which one holds at a time, the later before the earlier."""

    def prices_at(self, at: datetime) -> Mapping[str, Any]:
        """Return the prices of a moment."""
        return next((prices for prices in reversed(self.prices) if _holds(prices, at)), self.prices[0])


class _Provider:
    """One provider: what tells its models, and these, once they are asked for."""

    def __init__(self, block: str) -> None:
        head, *self._lines = block.splitlines()
        said = json.loads(head)
        self.id: str = said["id"]
        self.match: Mapping[str, Any] | None = said["match"]
        """What names of its models are like, where no provider is known; None says nothing."""
        self._fallback: Sequence[str] = said["fallback"]

    @cached_property
    def models(self) -> Sequence[_Model]:
        return [_Model(line) for line in self._lines]

    def find(self, name: str) -> _Model | None:
        """Return the first model that matches a name, of this provider and then of those whose models it offers."""
        for spelling in dict.fromkeys((name, _DATE.sub(r"-\1-\2-\3", name))):
            for provider in (self, *(one for of in self._fallback for one in _providers() if one.id == of)):
                for model in provider.models:
                    if _is_match(model.match, spelling):
                        return model
        return None


@cache
def _providers() -> Sequence[_Provider]:
    _, *blocks = (Path(__file__).parent / "prices.jsonl").read_text(encoding="utf-8").split("\n\n")
    return [_Provider(block) for block in blocks]


def _is_match(match: Mapping[str, Any], name: str) -> bool:
    ((kind, value),) = match.items()
    if kind in ("or", "and"):
        return (any if kind == "or" else all)(_is_match(part, name) for part in value)
    if kind == "regex":
        return bool(re.search(value, name))
    text, name = str(value).lower(), name.lower()
    if kind == "equals":
        return name == text
    if kind == "contains":
        return text in name
    return name.startswith(text) if kind == "starts_with" else name.endswith(text)


def _holds(prices: Mapping[str, Any], at: datetime) -> bool:
    """Return whether prices hold at a moment: from a day on, or in some hours of each day, of UTC."""
    if "from" in prices:
        return bool(at.date().isoformat() >= prices["from"])
    if "between" in prices:
        begin, end = prices["between"]
        time = at.time().isoformat()
        return bool(begin <= time < end if begin <= end else time >= begin or time < end)
    return True


def _leaves(match: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) of every clause that can decide alone: those under `or`, and single ones."""
    ((kind, value),) = match.items()
    if kind == "or":
        for part in value:
            yield from _leaves(part)
    elif kind != "and":
        yield kind, value


def _names(model: _Model, reference: str) -> bool:
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


def _candidates(provider: str | None, model: str) -> Iterator[tuple[_Provider, str]]:
    """Yield the providers to look in, with the model's name as that provider writes it."""
    if provider is not None and provider.strip().lower() not in ("", "litellm"):
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
        if table.match is not None and any(_is_match(table.match, spelling) for spelling in spellings):
            yield table, model
            return


@lru_cache(maxsize=4096)
def _find(provider: str | None, model: str) -> _Model | None:
    """Return the table's entry for a model, or None when it does not name that model."""
    for table, reference in _candidates(provider, model.strip().lower()):
        for wanted in dict.fromkeys((reference, *model_name(reference))):
            found = table.find(wanted)
            if found is not None and _names(found, wanted):
                return found
    return None


def genai_rates(
    provider: str | None, model: str, input_tokens: int, output_tokens: int, at_ns: int | None
) -> Rates | None:
    """Return what the tables say that the tokens of a call cost; None when they cannot say.

    Args:
        provider: Provider as recorded; None when it was not, then it follows from the model's name alone.
        model: Model name as recorded.
        input_tokens: Those of the call, which may have a separate price from some number on.
        output_tokens: Those of the call.
        at_ns: When the call was made, nanoseconds since the epoch; None means the newest price.
    """
    found = _find(provider, model)
    if found is None:
        return None
    prices = found.prices_at(datetime.now(UTC) if at_ns is None else _EPOCH + timedelta(microseconds=at_ns // 1000))
    rate = {kind: _rate(prices.get(kind), input_tokens) for kind in Rates._fields[:-1]}
    for kind, tokens in (("input", input_tokens), ("output", output_tokens)):
        if rate[kind] is None:
            if tokens:
                return None
            rate[kind] = Decimal(0)
    return Rates(**rate, per_request=Decimal(prices.get("thousand_requests", 0)) / 1000)


def _rate(price: Any, input_tokens: int) -> Decimal | None:
    """Return the price of one token: of a list its first, or that of the highest number that the input exceeds."""
    if isinstance(price, list):
        base, *tiers = price
        price = next((dollars for start, dollars in reversed(tiers) if input_tokens > start), base)
    return None if price is None else Decimal(price) / _MILLION


@lru_cache(maxsize=4096)
def writes_no_cache(provider: str | None, model: str) -> bool:
    """Return whether no request to a model writes to a cache that is counted.

    So it is where the tables have a price of its cached tokens, and never had one of writing them.
    """
    found = _find(provider, model)
    if found is None:
        return False
    return any("cache_read" in one for one in found.prices) and not any("cache_write" in one for one in found.prices)

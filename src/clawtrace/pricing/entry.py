"""One entry of `model_pricing`: what a project says a model costs.

Prices are US dollars. Exactly one unit may be used for each kind of token (`_per_1k` or `_per_1m`).
`input_*` is the price of input tokens that are neither read from nor written to a cache *at a separate price*:
where an entry states no cache price, cached tokens cost what other input costs; the same for reasoning and output.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator

from clawtrace.pricing.rates import Rates
from clawtrace.support.attribute_docs import Documented

__all__ = ["PriceEntry", "PriceTier"]

Dollars = Annotated[Decimal, Field(ge=0, allow_inf_nan=False)]

_KINDS = ("input", "output", "cache_read", "cache_write", "reasoning")
_UNITS = (("per_1k", Decimal(1000)), ("per_1m", Decimal(1_000_000)))


class _TokenPrices(Documented):
    """Prices of the five kinds of tokens, in either unit."""

    input_per_1k: Dollars | None = None
    """Dollars for a thousand input tokens."""
    input_per_1m: Dollars | None = None
    """Dollars for a million input tokens."""
    output_per_1k: Dollars | None = None
    """Dollars for a thousand output tokens."""
    output_per_1m: Dollars | None = None
    """Dollars for a million output tokens."""
    cache_read_per_1k: Dollars | None = None
    """Dollars for a thousand input tokens that came from the provider's cache."""
    cache_read_per_1m: Dollars | None = None
    """Dollars for a million input tokens that came from the provider's cache."""
    cache_write_per_1k: Dollars | None = None
    """Dollars for a thousand input tokens that were written to the provider's cache."""
    cache_write_per_1m: Dollars | None = None
    """Dollars for a million input tokens that were written to the provider's cache."""
    reasoning_per_1k: Dollars | None = None
    """Dollars for a thousand reasoning tokens."""
    reasoning_per_1m: Dollars | None = None
    """Dollars for a million reasoning tokens."""

    @model_validator(mode="after")
    def _one_unit_each(self) -> _TokenPrices:
        for kind in _KINDS:
            given = [f"{kind}_{unit}" for unit, _ in _UNITS if getattr(self, f"{kind}_{unit}") is not None]
            if len(given) > 1:
                raise ValueError(f"`{given[0]}` and `{given[1]}` state the same price twice; keep one of them")
        return self

    def per_token(self, kind: str) -> Decimal | None:
        """Return the price of one token of `kind`, in dollars; None when it is not stated."""
        for unit, size in _UNITS:
            price: Decimal | None = getattr(self, f"{kind}_{unit}")
            if price is not None:
                return price / size
        return None


class PriceTier(_TokenPrices):
    """Other prices for a call with a long input; they hold for all tokens of that call."""

    above_input_tokens: int = Field(gt=0)
    """The tier applies when a call's input tokens (cached ones included) exceed this number."""

    @model_validator(mode="after")
    def _states_something(self) -> PriceTier:
        if all(self.per_token(kind) is None for kind in _KINDS):
            raise ValueError("a tier must state at least one price, for example `input_per_1m`")
        return self


class PriceEntry(_TokenPrices):
    """What one model costs."""

    per_request: Dollars | None = None
    """Dollars for each call, regardless of its tokens."""
    tiers: tuple[PriceTier, ...] = ()
    """Prices for calls with a long input; what a tier does not state keeps its price."""

    @model_validator(mode="after")
    def _whole(self) -> PriceEntry:
        stated = {kind for kind in _KINDS if self.per_token(kind) is not None}
        if stated or self.tiers:
            for kind in ("input", "output"):
                if kind not in stated:
                    raise ValueError(
                        f"`{kind}_per_1m` (or `{kind}_per_1k`) is missing; write 0 where {kind} tokens cost nothing"
                    )
        elif self.per_request is None:
            raise ValueError("an entry must state `input_per_1m` and `output_per_1m`, or `per_request`")
        limits = [tier.above_input_tokens for tier in self.tiers]
        if len(set(limits)) != len(limits):
            raise ValueError("two tiers have the same `above_input_tokens`")
        return self

    @property
    def bills_cache_writes(self) -> bool:
        """Whether writing to the cache has a separate price, in any tier."""
        return any(prices.per_token("cache_write") is not None for prices in (self, *self.tiers))

    def rates(self, input_tokens: int | None) -> Rates | None:
        """Return the prices for a call with `input_tokens`; None when an unknown input leaves the tier open."""
        if self.tiers and input_tokens is None:
            return None
        prices = {kind: self.per_token(kind) for kind in _KINDS}
        for tier in sorted(self.tiers, key=lambda tier: tier.above_input_tokens):
            if input_tokens is not None and input_tokens > tier.above_input_tokens:
                prices.update({kind: p for kind in _KINDS if (p := tier.per_token(kind)) is not None})
        return Rates(**prices, per_request=self.per_request or Decimal(0))

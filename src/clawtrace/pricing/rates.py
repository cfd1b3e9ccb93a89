"""What the tokens of a call cost, at the rates of whichever list names its model."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

__all__ = ["ModelCall", "Rates", "cost_of"]


class ModelCall(NamedTuple):
    """What the price of a call depends on. Input includes cached tokens, output includes reasoning; None is unknown."""

    provider: str | None
    model: str | None
    """The answering (else requested) model's name as recorded, with any prefix and date that it has."""
    input_tokens: int | None
    output_tokens: int | None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    at_ns: int | None = None
    """Start of the call, nanoseconds since the epoch."""


class Rates(NamedTuple):
    """US dollars for one token of each kind; None where a kind has no separate price."""

    input: Decimal | None
    output: Decimal | None
    cache_read: Decimal | None
    cache_write: Decimal | None
    reasoning: Decimal | None
    per_request: Decimal = Decimal(0)


def cost_of(rates: Rates, call: ModelCall) -> Decimal | None:
    """Return the cost of `call` at `rates`; None when an unknown or contradictory count decides."""
    if rates.input is None or rates.output is None:
        return rates.per_request
    sides = (
        (call.input_tokens, rates.input, ((call.cache_read, rates.cache_read), (call.cache_write, rates.cache_write))),
        (call.output_tokens, rates.output, ((call.reasoning, rates.reasoning),)),
    )
    total = rates.per_request
    for tokens, rate, parts in sides:
        side = _side(tokens, rate, parts)
        if side is None:
            return None
        total += side
    return total


def _side(tokens: int | None, rate: Decimal, parts: Iterable[tuple[int | None, Decimal | None]]) -> Decimal | None:
    """Return the cost of one side of a call: the parts with a separate price, then the rest at `rate`."""
    priced = [(count, price) for count, price in parts if price is not None and count is not None]
    separate = sum((count * price for count, price in priced), Decimal(0))
    if tokens is None:
        return separate if rate == 0 else None
    rest = tokens - sum(count for count, _ in priced)
    return None if rest < 0 else separate + rest * rate

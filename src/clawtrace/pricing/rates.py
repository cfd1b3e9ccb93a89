"""What the tokens of a call cost, at the rates of whichever list names its model; and one name for each provider.

Telemetry and price tables call providers by different names. Whole names only: `openai-compatible` is not `openai`, it sets its own prices.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

__all__ = ["ModelCall", "Rates", "cost_of", "provider_names"]


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


_ALIASES = {
    # OpenTelemetry's gen_ai.provider.name and gen_ai.system values, and instrumentations' own words
    "aws.bedrock": "aws",
    "aws_bedrock": "aws",
    "amazon_bedrock": "aws",
    "amazon-bedrock": "aws",
    "bedrock": "aws",
    "az.ai.inference": "azure",
    "az.ai.openai": "azure",
    "azure.ai.inference": "azure",
    "azure.ai.openai": "azure",
    "azure_openai": "azure",
    "azure-openai": "azure",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "gcp.vertex_ai": "google",
    "gcp.vertex.agent": "google",
    "gemini": "google",
    "google-gla": "google",
    "google-vertex": "google",
    "google_genai": "google",
    "vertex": "google",
    "vertex_ai": "google",
    "vertexai": "google",
    "mistral_ai": "mistral",
    "mistralai": "mistral",
    "moonshot_ai": "moonshotai",
    "x_ai": "x-ai",
    "xai": "x-ai",
    "together_ai": "together",
    "together-ai": "together",
    "fireworks_ai": "fireworks",
    "fireworks-ai": "fireworks",
}


def provider_names(provider: str) -> tuple[str, ...]:
    """Return the names under which a price for `provider` may be stated, the most particular first.

    The name itself in lower case, its place in the alias table, and, for ``openai.responses`` and the like, what
    stands before the first dot.
    """
    name = provider.strip().lower()
    if name in _ALIASES:
        return name, _ALIASES[name]
    head = name.split(".", 1)[0]
    return tuple(dict.fromkeys(found for found in (name, head, _ALIASES.get(head)) if found))

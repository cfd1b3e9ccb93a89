"""What a model call costs: the project's own prices first, then the `genai-prices` tables (spec: span-model.md §6)."""

from clawtrace.pricing.price import Price, Pricing
from clawtrace.pricing.rates import ModelCall

__all__ = ["ModelCall", "Price", "Pricing"]

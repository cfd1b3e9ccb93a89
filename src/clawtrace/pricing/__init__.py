"""What a model call costs: the project's own prices first, then the `genai-prices` tables (spec: span-model.md §6)."""

from clawtrace.pricing.entry import PriceEntry, PriceTier
from clawtrace.pricing.price import ModelCall, Price, Pricing

__all__ = ["ModelCall", "Price", "PriceEntry", "PriceTier", "Pricing"]

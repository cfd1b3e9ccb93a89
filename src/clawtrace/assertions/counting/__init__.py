"""Counts, bounds and budgets."""

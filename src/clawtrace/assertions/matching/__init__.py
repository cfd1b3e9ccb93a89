"""Conditions on texts, names and JSON."""

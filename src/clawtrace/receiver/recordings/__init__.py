"""Recorded OTLP as input."""

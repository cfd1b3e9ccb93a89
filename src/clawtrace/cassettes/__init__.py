"""Cassettes: recorded exchanges with models, which are replayed in place of their providers."""

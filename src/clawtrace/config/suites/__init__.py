"""Suites, the profiles and the agents that they name."""

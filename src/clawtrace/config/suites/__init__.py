"""Suites, profiles and agents."""

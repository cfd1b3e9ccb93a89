"""Runs at work, from the first agent to the last verdict."""

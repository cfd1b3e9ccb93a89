"""Runs that are reused, and runs at work, from the first agent to the last verdict."""

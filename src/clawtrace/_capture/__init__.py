"""Captures: what the code under test exports while a block runs, and questions about it."""

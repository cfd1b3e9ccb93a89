"""Requests become columns, from any encoding."""

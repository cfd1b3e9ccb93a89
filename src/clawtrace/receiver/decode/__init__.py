"""Requests become columns, whatever their encoding."""

"""Spans of agents and handoffs that are no agents or no tool calls."""

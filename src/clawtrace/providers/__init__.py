"""Hosted models through pydantic-ai, for the runner `llm_probe` and for judges (spec: config.md §3, §4)."""

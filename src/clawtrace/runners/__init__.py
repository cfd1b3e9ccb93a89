"""Runners of agents: one module per runner type, found by walking this package (spec: config.md §3)."""

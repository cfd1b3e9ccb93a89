"""Campaigns: expand a suite into runs, execute them, store the results (spec: config.md §2, §5)."""

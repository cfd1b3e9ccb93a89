"""The agent of the runner `llm_probe`: a tool-calling loop in a process of its own (spec: config.md §3)."""

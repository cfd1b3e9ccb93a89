"""The engine: raw rows become facts, assertions become verdicts."""

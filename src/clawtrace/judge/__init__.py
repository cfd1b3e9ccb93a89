"""Models that judge: what they are given, what they may answer, and what becomes of their scores (spec: config.md §4)."""

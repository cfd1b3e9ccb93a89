"""Cross-checks: where statements of one trace contradict each other, the facts that rest on them are unknown."""

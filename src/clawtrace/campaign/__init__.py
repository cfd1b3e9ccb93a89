"""From a suite to judged runs: expand, execute, keep (spec: config.md §2, §5)."""

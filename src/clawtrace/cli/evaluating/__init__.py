"""What `clawtrace eval` and `query --verdict` do: run a suite, judge existing runs, ask verdicts again."""

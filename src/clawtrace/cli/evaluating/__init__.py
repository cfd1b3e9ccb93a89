"""The work of `clawtrace eval` and `query --verdict`: run a suite, judge existing runs, ask verdicts again."""

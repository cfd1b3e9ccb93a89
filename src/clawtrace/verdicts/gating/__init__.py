"""From verdicts to pass rates, thresholds and the exit code."""

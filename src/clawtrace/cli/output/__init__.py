"""Output of commands: data, progress, reports, the outcome and the exit code."""

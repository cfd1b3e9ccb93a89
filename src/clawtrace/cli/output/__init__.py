"""What commands print: data, progress, reports, the outcome and the exit code."""

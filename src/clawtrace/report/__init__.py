"""What one is told: one module a format, all of them written from the verdicts alone."""

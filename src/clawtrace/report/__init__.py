"""Reports: one module a format, all of them written from the verdicts alone."""

"""From answers to verdicts: what is unknown, what may still change, what is a known failure."""

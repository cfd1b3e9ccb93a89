"""Which run a span belongs to, and what is counted for each run."""

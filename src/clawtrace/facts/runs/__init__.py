"""Facts of a whole run: agents, failures, totals, completeness."""

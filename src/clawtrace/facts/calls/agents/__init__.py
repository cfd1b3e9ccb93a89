"""Agent spans that are no agents, and tool spans that are handoffs."""
